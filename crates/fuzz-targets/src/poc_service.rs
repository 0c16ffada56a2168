//! What two ends of the partial-order transport agree on: on the wire, and as text.

use outflow_petri::service::{Flow, Request, Service, Terms};

/// What is read can be written and read again; what a server makes of a request is what its client takes.
pub(crate) fn poc_service(data: &[u8]) {
    match Request::parse(data) {
        Ok(request) => {
            let mut out = Vec::new();
            if request.emit(&mut out).is_ok() {
                assert!(Request::parse(&out).as_ref() == Ok(&request), "written and read");
            }
            answered(&request);
        }
        Err(error) => assert!(error.offset <= data.len() && !error.reason.is_empty()),
    }
    match Service::parse(data) {
        Ok(service) => {
            let mut out = Vec::new();
            if service.emit(&mut out).is_ok() {
                assert!(Service::parse(&out) == Ok(service), "written and read");
            }
        }
        Err(error) => assert!(error.offset <= data.len() && !error.reason.is_empty()),
    }
    match String::from_utf8_lossy(data).parse::<Flow>() {
        Ok(flow) => {
            flow.check().expect("it was read");
            // Classes that nothing is of are not printed.
            let printed = flow.to_string();
            let again = printed.parse::<Flow>().expect("it was printed");
            assert!((0..flow.net.objects()).all(|object| again.class(object) == flow.class(object)));
            assert_eq!(again.to_string(), printed, "printed and read");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn answered(request: &Request) {
    let few =
        Terms { rounds_max: 1, buffer_bytes_max: 1, allows_reliable_without_end: false, ..Terms::default() };
    for terms in [Terms::default(), few] {
        match terms.answer(request, request.to_server.as_ref()) {
            Ok(service) => {
                assert_eq!(service.is_within(request), Ok(()));
                assert!(
                    service.differences(request).is_empty()
                        || !service.differences(request).to_string().is_empty()
                );
            }
            Err(refusal) => assert!(!refusal.text.is_empty() && refusal.text.len() <= 128, "{refusal}"),
        }
    }
}
