//! What packets of groups are that do not say it themselves: from session descriptions (RFC 8866).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use outflow_control::session_description;
use outflow_engine::message::ControlError;
use outflow_packet::gmc::Described;
use outflow_rtp::sdp::Description;

use crate::settings::Multicast;

/// By their groups.
pub(super) type Groups = BTreeMap<IpAddr, Arc<Described>>;

/// Reads what the configuration names.
pub(super) fn read(settings: &Multicast) -> Result<Groups, ControlError> {
    let mut groups: BTreeMap<IpAddr, Described> = BTreeMap::new();
    for file in &settings.described.0 {
        let added = session_description(file)
            .and_then(|read| add(read, &mut groups).map_err(|why| format!("{}: {why}", file.display())));
        added.map_err(|why| {
            let help = "name session descriptions of groups in [multicast] described";
            ControlError::Configuration(format!("{why}: {help}"))
        })?;
    }
    Ok(groups.into_iter().map(|(group, described)| (group, described.into())).collect())
}

fn add(description: Description, groups: &mut BTreeMap<IpAddr, Described>) -> Result<(), &'static str> {
    for media in description.media {
        let Some(group) = media.address.filter(IpAddr::is_multicast) else {
            return Err("its c= lines name no group");
        };
        if media.port == 0 {
            return Err("an m= line has no port");
        }
        groups.entry(group).or_default().add(media.port, media.track);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use outflow_config::Files;

    use super::*;

    fn read_texts(texts: &[&str]) -> Result<Groups, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let named = texts.iter().enumerate().map(|(number, text)| {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, text).expect("a file");
            path
        });
        let settings = Multicast { described: Files(named.collect()), ..Multicast::default() };
        read(&settings).map_err(|error| error.to_string())
    }

    #[test]
    fn tracks_are_found_by_their_groups() {
        let one = "v=0\ns=x\nc=IN IP4 239.1.1.1/8\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n";
        let both = format!("{one}m=audio 5006 RTP/AVP 97\na=rtpmap:97 opus/48000/2\n");
        let groups = read_texts(&[&both, &one.replace("239.1.1.1", "239.1.1.2")]).expect("they can be read");
        let names = groups.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names, ["239.1.1.1", "239.1.1.2"]);
        assert_ne!(groups[&IpAddr::from([239, 1, 1, 1])], groups[&IpAddr::from([239, 1, 1, 2])]);
    }

    #[test]
    fn what_describes_no_group_is_refused_with_its_name() {
        let wrong = |text: &str| read_texts(&[text]).expect_err("it is none");
        let said = wrong("v=0\ns=x\nc=IN IP4 10.0.0.1\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n");
        assert!(said.contains("/0: its c= lines name no group: name session"), "{said}");
        assert!(wrong("v=0\n").contains("/0: "));
        let missing = Multicast { described: Files(vec!["/none/a.sdp".into()]), ..Multicast::default() };
        assert!(read(&missing).expect_err("it is not there").to_string().contains("/none/a.sdp: "));
    }
}
