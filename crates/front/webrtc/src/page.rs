//! The pages that play and that publish a stream: files, compiled in, that need nothing from elsewhere.

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use outflow_api::{StreamPage, asset};

const PLAYS: &str = include_str!("page/play.html");
const PUBLISHES: &str = include_str!("page/publish.html");

/// What the pages are made of, beside the icon of the relay's own page: path, media type, content.
const ASSETS: [(&str, &str, &str); 7] = [
    ("/assets/webrtc.css", CSS, include_str!("page/webrtc.css")),
    ("/assets/webrtc.js", JS, include_str!("page/webrtc.js")),
    ("/assets/play.css", CSS, include_str!("page/play.css")),
    ("/assets/play.js", JS, include_str!("page/play.js")),
    ("/assets/publish.css", CSS, include_str!("page/publish.css")),
    ("/assets/publish.js", JS, include_str!("page/publish.js")),
    ("/assets/capture.js", JS, include_str!("page/capture.js")),
];

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Nothing may come from elsewhere. Other pages may frame the page that plays: it can do no more than any player.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// The same of the page that publishes. No other page may have its user press a button there that is not seen.
const UNFRAMED: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                        media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                        frame-ancestors 'none'";

/// Where the relay's own page finds them.
pub(crate) const PAGES: [StreamPage; 2] = [
    StreamPage { label: "play", path: "/play/", publishes: false },
    StreamPage { label: "publish", path: "/publish/", publishes: true },
];

/// The page that plays, the same for all streams.
pub(crate) async fn plays() -> impl IntoResponse {
    (asset("text/html; charset=utf-8", POLICY), PLAYS)
}

/// The page that publishes, the same for all streams.
pub(crate) async fn publishes() -> impl IntoResponse {
    (asset("text/html; charset=utf-8", UNFRAMED), PUBLISHES)
}

/// What they are made of.
pub(crate) fn assets<S: Clone + Send + Sync + 'static>() -> Router<S> {
    ASSETS.iter().fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(move || async move { (asset(kind, UNFRAMED), *content) }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_need_nothing_from_elsewhere_and_nothing_that_their_policies_forbid() {
        for (path, _, content) in ASSETS.into_iter().chain([("", "", PLAYS), ("", "", PUBLISHES)]) {
            assert!(PLAYS.contains(path) || PUBLISHES.contains(path), "a page uses {path}");
            // A page tells its user where it is on the relay's own machine.
            let content = content.replace("http://localhost", "");
            for elsewhere in ["http://", "https://", "url(", "//cdn", "@import"] {
                assert!(!content.contains(elsewhere), "{path}: {elsewhere}");
            }
        }
        for inline in ["<script>", "style=", "onclick=", "onload=", "<style"] {
            assert!(!PLAYS.contains(inline) && !PUBLISHES.contains(inline), "{inline}");
        }
    }

    #[test]
    fn pages_load_all_that_their_scripts_import() {
        for (page, scripts) in [(PLAYS, &["play.js"][..]), (PUBLISHES, &["publish.js", "capture.js"])] {
            for script in scripts.iter().chain(&["webrtc.js"]) {
                let path = format!("/assets/{script}");
                let (.., content) = ASSETS.iter().find(|(known, ..)| *known == path).expect("an asset");
                for import in content.split("from \"").skip(1).filter_map(|text| text.split('"').next()) {
                    assert!(page.contains(&format!("modulepreload\" href=\"{import}\"")), "{path}: {import}");
                }
            }
        }
    }
}
