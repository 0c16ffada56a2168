//! The page that plays a stream: three files, compiled in, that need nothing from elsewhere.

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use outflow_api::asset;

const PAGE: &str = include_str!("page/index.html");

/// What the page is made of, beside the icon of the relay's own page: path, media type, content.
const ASSETS: [(&str, &str, &str); 2] = [
    ("/assets/play.css", "text/css; charset=utf-8", include_str!("page/play.css")),
    ("/assets/play.js", "text/javascript; charset=utf-8", include_str!("page/play.js")),
];

/// Nothing may come from elsewhere. Other pages may frame this one: it can do no more than any player.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// The page itself, the same for all streams.
pub(crate) async fn page() -> impl IntoResponse {
    (asset("text/html; charset=utf-8", POLICY), PAGE)
}

/// What it is made of.
pub(crate) fn assets<S: Clone + Send + Sync + 'static>() -> Router<S> {
    ASSETS.iter().fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(move || async move { (asset(kind, POLICY), *content) }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_nothing_that_its_policy_forbids() {
        for (path, _, content) in ASSETS.into_iter().chain([("", "", PAGE)]) {
            assert!(PAGE.contains(path), "the page uses {path}");
            for elsewhere in ["http://", "https://", "url(", "//cdn", "@import"] {
                assert!(!content.contains(elsewhere), "{elsewhere}");
            }
        }
        for inline in ["<script>", "style=", "onclick=", "onload=", "<style"] {
            assert!(!PAGE.contains(inline), "{inline}");
        }
    }
}
