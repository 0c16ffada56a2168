//! Keys, and tokens that were signed with them (Python's cryptography 48). They are good from 1000 s to 2000 s after 1970.

pub(super) const JWKS: &str = concat!(
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"ed","use":"sig","alg":"EdDSA","x":"A6EHv_POEL4dcN0Y"#,
    r#"50vAmWfk1jCbpQ1fHdyGZBJVMbg"},{"kty":"EC","crv":"P-256","kid":"ec","use":"sig","alg":"ES256","x""#,
    r#":"Rxw-dYxJBChbun5TEY7Q9SSt6wdX0lvS-Oew1236cUw","y":"3VIPesqKi5F6zDf1HejwybvjrYWDgucC3CWhLQn3qFg""#,
    r#"},{"kty":"RSA","kid":"rsa","use":"sig","alg":"RS256","n":"xrhZWxqKEyRJcLyStAKAYKcd1MXZ5AK1pOvekv"#,
    r#"_FyaX4HBOnrmidcFVEaaZW9MafqJOroUzEU-ZtvvoPuLpybGVhU7-a6MSH8I6H5d-l3fHof0MfDu-HVvMFUt0FocyJdNadYT"#,
    r#"aKguHADX_HPY78NDYbDHm9gxJmhfGAsHhJq9VJYTw2Z6zEM6EMEMIeEJt-ezTMXV04KNMFc8D53V6xzbAUvhZt-NM_3Yv6hN"#,
    r#"d3w3kw6_iv9knziCt610xHNYi1bKfx-cC_qaUuRDC1uxZIWAuMVBv-Ubk_2gEuYsYJLjH10sBFvznz1o5aujLe-L4w3GeZyF"#,
    r#"Hui1CsUEYxI2abLw","e":"AQAB"},{"kty":"oct","kid":"hmac","k":"cHVibGlj"}]}"#,
);
pub(super) const ED: &str = concat!(
    r#"eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImVkIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi"#,
    r#"OiJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMCwib3V0ZmxvdyI6eyJwdWJsaXNoIjpb"#,
    r#"ImxpdmUvKiJdLCJwbGF5IjpbImxpdmUvYSJdfX0.zygeegvvxAaD0-l7A1DO5pg9r2OM5XAe0N_XyyGHtlXpxCodhZPr0XcM"#,
    r#"VY27Zs52fJDNngiZEeHqei-NNRcdBA"#,
);
pub(super) const EC: &str = concat!(
    r#"eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImVjIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi"#,
    r#"OiJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMCwib3V0ZmxvdyI6eyJwdWJsaXNoIjpb"#,
    r#"ImxpdmUvKiJdLCJwbGF5IjpbImxpdmUvYSJdfX0.ISrg_VbpBwW9OyHxBsHKGwPP37ZUbM7KOczcBJ3dXubK3XwONM7aiQDx"#,
    r#"7-MKVa0V4DwdrQ_KC_M_C5NkX_932Q"#,
);
pub(super) const RSA: &str = concat!(
    r#"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQ"#,
    r#"iOiJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMCwib3V0ZmxvdyI6eyJwdWJsaXNoIjp"#,
    r#"bImxpdmUvKiJdLCJwbGF5IjpbImxpdmUvYSJdfX0.D6a4nIEQR4Fhvp7XnUwzy6rqQR4lcLC7DReHpiip18E0nf0gENBeDPU"#,
    r#"3qfBsmSP-_B6gvOAl0Hw55yAitHGiUgzNzFjaOXBRAda1b86efnXl8pj4O1ik5ReVTOMnlibH5I42C6Ub7kMbUmqEnkJpL4r"#,
    r#"GmGblxsaEgf1Ji9KuWnA-9B613AOaXjT9FWmjduYQx0K_0YAu1MvqJmhwbdsMvTNMjdd9l1EwyrvuMwQigM00aJNiutkc7kL"#,
    r#"kMocfFFsnAJkV6Cbu2N9vRnuZhd1KYvyNzUTdKywopWJDsj7PRZpiZb4d_DgQVAvee1_xaLnauVLxZ-DuEw2OvdS3XpYQ5A"#,
);
pub(super) const HMAC: &str = concat!(
    r#"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImhtYWMifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhd"#,
    r#"WQiOiJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMCwib3V0ZmxvdyI6eyJwdWJsaXNoI"#,
    r#"jpbImxpdmUvKiJdLCJwbGF5IjpbImxpdmUvYSJdfX0.pjLuHXbz_DtaU1dkXeIzR6ZcPSNTzIoJitHM0VUSUdI"#,
);
pub(super) const NONE: &str = concat!(
    r#"eyJhbGciOiJub25lIiwidHlwIjoiSldUIiwia2lkIjoiZWQifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiO"#,
    r#"iJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMCwib3V0ZmxvdyI6eyJwdWJsaXNoIjpbI"#,
    r#"mxpdmUvKiJdLCJwbGF5IjpbImxpdmUvYSJdfX0."#,
);
pub(super) const OTHER_KEY: &str = concat!(
    r#"eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImdvbmUifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhd"#,
    r#"WQiOiJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMCwib3V0ZmxvdyI6eyJwdWJsaXNoI"#,
    r#"jpbImxpdmUvKiJdLCJwbGF5IjpbImxpdmUvYSJdfX0.FXl47zoqc4lTUc51XGivc9ja2wPSQhGrftzRhhVfD_9HgIFO01OYS"#,
    r#"xpXiWTmyUq_jXk_c6S--nXal4bxjlyFDg"#,
);
pub(super) const OTHER_ISSUER: &str = concat!(
    r#"eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImVkIn0.eyJpc3MiOiJodHRwczovL2V2aWwuZXhhbXBsZSIsImF1"#,
    r#"ZCI6Im91dGZsb3ciLCJzdWIiOiJjYW1lcmEtNyIsImV4cCI6MjAwMCwibmJmIjoxMDAwLCJvdXRmbG93Ijp7InB1Ymxpc2gi"#,
    r#"OlsibGl2ZS8qIl0sInBsYXkiOlsibGl2ZS9hIl19fQ.SQN0DijuVKavko_OJuhe39GA6lYKuqhVbXAtokztmff76QL5t7_OU"#,
    r#"RmTRVS5DVb8z6MagBJRN1IrhjCBSj5vCQ"#,
);
pub(super) const OTHER_AUDIENCE: &str = concat!(
    r#"eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImVkIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi"#,
    r#"OiJ4Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMCwib3V0ZmxvdyI6eyJwdWJsaXNoIjpbImxpdmUv"#,
    r#"KiJdLCJwbGF5IjpbImxpdmUvYSJdfX0.k59d628796sBHo8L_gHDKUpNTUrneVGd33GAJi4fDeSoH9LNTFXs5Zp3laB6VYLf"#,
    r#"V3KhzaPS4oqUw7Cf3NTsCg"#,
);
pub(super) const ENDLESS: &str = concat!(
    r#"eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImVkIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi"#,
    r#"OiJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJuYmYiOjEwMDAsIm91dGZsb3ciOnsicHVibGlzaCI6WyJsaXZlLyoiXSwi"#,
    r#"cGxheSI6WyJsaXZlL2EiXX19.sjHtliiQqCI7kh9JylCCMC2cWK6xi1kQNQiG1mqfGzu5mtXOGddiaoiri4FcmzdItLt2Xwx"#,
    r#"shpciF6ZoHSqtBA"#,
);
pub(super) const BARE: &str = concat!(
    r#"eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImVkIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi"#,
    r#"OiJvdXRmbG93Iiwic3ViIjoiY2FtZXJhLTciLCJleHAiOjIwMDAsIm5iZiI6MTAwMH0.ZdC7H4DN20eDB9vEpSqKK_QwZumF"#,
    r#"q6AAuqaDk6AJiwaA9-rVdEPcZT4-ZGnIv5Lb-VNoPdVOqr-q5T3YQt-OCg"#,
);
