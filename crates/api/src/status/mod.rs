//! The status page: three files, compiled in, that need nothing from elsewhere.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use axum::routing::get;

const PAGE: &str = include_str!("index.html");

/// What the page is made of: path, media type, content.
const ASSETS: [(&str, &str, &str); 3] = [
    ("/assets/status.css", "text/css; charset=utf-8", include_str!("status.css")),
    ("/assets/status.js", "text/javascript; charset=utf-8", include_str!("status.js")),
    ("/assets/icon.svg", "image/svg+xml", include_str!("icon.svg")),
];

/// Nothing may come from elsewhere, and no other page may frame this one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page itself.
pub(super) async fn page() -> impl IntoResponse {
    (asset("text/html; charset=utf-8", POLICY), PAGE)
}

/// What the page is made of. It tells nothing, so that every client may have it.
pub(super) fn assets<S: Clone + Send + Sync + 'static>() -> Router<S> {
    ASSETS.iter().fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(move || async move { (asset(kind, POLICY), *content) }))
    })
}

/// What is said of a file that is compiled in: its media type, and what a page of it may do.
pub fn asset(kind: &'static str, policy: &'static str) -> [(HeaderName, &'static str); 5] {
    [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A relay that was replaced by a newer one shows the newer page.
        (header::CACHE_CONTROL, "no-cache"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let contents = ASSETS.iter().map(|(_, _, content)| *content).chain([PAGE]);
        for content in contents {
            let content = content.replace("http://www.w3.org/2000/svg", "");
            for elsewhere in ["src=\"http", "href=\"http", "url(http", "//cdn", "@import"] {
                assert!(!content.contains(elsewhere), "{elsewhere}");
            }
        }
        for (path, _, _) in ASSETS {
            assert!(PAGE.contains(path), "the page uses {path}");
        }
    }

    #[test]
    fn the_page_has_no_scripts_or_styles_that_its_policy_forbids() {
        for inline in ["<script>", "style=", "onclick=", "onload=", "<style"] {
            assert!(!PAGE.contains(inline), "{inline}");
        }
    }
}
