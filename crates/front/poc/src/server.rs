//! Clients that ask here: to be sent a stream, or to publish one.
use std::net::SocketAddr;

use outflow_control::{Control, Upgrade, place};
use outflow_door::{Grant, Permit, Request, Right};
use outflow_engine::message::{ControlError, Receiver};
use outflow_poc_socket::media::Form;
use outflow_poc_socket::{Asking, OpenError, PocListener, media};

use super::send::{Media, description};
use super::{publish, send};
use crate::codes::REFUSED;
use crate::handover::{PARTS, Taken, give};
use crate::options::options;
use crate::resources::Resources;
use crate::saved::encode;
use crate::settings::{NAME, Poc};

/// Opens the server, if there is to be one.
///
/// # Errors
/// The keys cannot be read, or the address is not to be had.
pub(super) fn listen(control: &Control) -> Result<Option<PocListener>, ControlError> {
    let config = control.config();
    let at = config.listen.at(NAME).map(|at| place("POC", at));
    let taken = control.shared::<Taken>().of(at);
    let Some(at) = at else { return Ok(None) };
    if let Some(listener) = taken {
        tracing::info!(protocol = "POC", %at, "listening, as the process before");
        return Ok(Some(listener));
    }
    let bound = PocListener::bind(at, options(&config.section(), None)?);
    let listener = bound.map_err(|error| {
        let error = std::io::Error::other(error);
        ControlError::system(format!("listening for POC at {at} (see [listen])"), &error)
    })?;
    tracing::info!(protocol = "POC", %at, "listening");
    Ok(Some(listener))
}

/// Answers all that ask, until the socket fails or another process goes on.
pub async fn serve(listener: PocListener, control: Control) {
    let (end, mut member) = (listener.end(), control.shared::<Upgrade>().join(PARTS));
    // What players acknowledge comes here, and media waits for that.
    member.brings_media();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = member.asked() => match give(&end, &control, &mut member, |saved| encode(&saved)).await {
                // Nothing is left to be done here: the relay ends when it has said all that it has to.
                true => return std::future::pending().await,
                false => continue,
            },
        };
        match accepted {
            Ok(asking) => match control.door().admit(asking.from().ip()) {
                Ok(permit) => drop(tokio::spawn(answer(control.clone(), asking, permit))),
                Err(full) => asking.refuse(REFUSED, &full.to_string()),
            },
            Err(error) => {
                tracing::error!(%error, "the partial-order transport serves no more");
                return;
            }
        }
    }
}

/// What a client asks for.
struct ServiceRequest {
    request: Request,
    form: Form,
}

impl ServiceRequest {
    /// Reads the path and the query of a resource that `peer` asks for.
    fn of(peer: SocketAddr, (path, query): (&str, &str)) -> Result<Self, ControlError> {
        let unknown = || ControlError::Unsupported("a stream goes as=ts or as=rtp, nothing else".to_owned());
        let form = Form::of(query).ok_or_else(unknown)?;
        let request = Request::parse(peer, path.trim_start_matches('/'), query)?;
        Ok(ServiceRequest { request: Request { protocol: NAME, ..request }, form })
    }
}

/// Serves a client to its end; its place is given back then.
async fn answer(control: Control, asking: Asking, permit: Permit) {
    let (peer, resource) = (asking.from(), asking.request().resource.clone());
    let (path, query) = resource.split_once('?').unwrap_or((&resource, ""));
    if let Some(handler) = control.shared::<Resources>().of(path) {
        return handler(asking, permit, query).await;
    }
    let plays = asking.request().to_client.is_some();
    let right = if plays { Right::Play } else { Right::Publish };
    let admitted = async {
        let wish = ServiceRequest::of(peer, (path, query))?;
        let grant = control.door().enter(right, &wish.request).await?;
        Ok::<_, ControlError>((wish, grant))
    };
    let (wish, grant) = match admitted.await {
        Ok(wish) => wish,
        Err(error) => return drop(refuse(asking, &error)),
    };
    let stream = wish.request.stream.clone();
    let ended = match plays {
        true => play(&control, asking, wish, &grant).await,
        false => take(&control, asking, wish, &grant).await,
    };
    if let Err(why) = ended {
        tracing::info!(%stream, %peer, why, "a client of the partial-order transport was sent away");
    }
}

/// Sends a stream to a client, until one of both ends it.
async fn play(control: &Control, asking: Asking, wish: ServiceRequest, grant: &Grant) -> Result<(), String> {
    let receiver = Receiver::new("poc", wish.request.peer, wish.request.selection.clone());
    let opened = async {
        let described =
            description(control, &wish.request.stream, &wish.request.selection, wish.form).await?;
        Ok::<_, ControlError>((described, control.play(grant, receiver, send::delivery(wish.form)).await?))
    };
    let (described, mut playing) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return Err(refuse(asking, &error)),
    };
    let latency = control.config().section::<Poc>().latency;
    let socket = asking.answer(Some(&media::stream(latency))).map_err(|error| error.to_string())?;
    let media = Media { form: wish.form, described, latency };
    if media.begin(control.epoch(), socket, &mut playing).await.is_ok() {
        playing.closed().await;
    }
    Ok(())
}

/// Publishes what a client sends, until one of both ends it.
async fn take(control: &Control, asking: Asking, wish: ServiceRequest, grant: &Grant) -> Result<(), String> {
    let announced = match control.takes_publisher(&wish.request.stream) {
        Ok(announced) => announced,
        Err(error) => return Err(refuse(asking, &error)),
    };
    let socket = asking.answer(None).map_err(|error: OpenError| error.to_string())?;
    publish::publish(control, socket, (grant, wish.form), (wish.request.peer, announced)).await
}

fn refuse(asking: Asking, error: &ControlError) -> String {
    let text = error.to_string();
    asking.refuse(REFUSED, &text);
    text
}
