//! Callers who are always let through, or never.

use http::StatusCode;
use spillgate_policy::{ListKind, Terms};
use spillgate_tower::SpillgateLayer;

use crate::common::{PEER, gate, get, send};

#[tokio::test]
async fn an_allowed_caller_is_never_limited_and_a_blocked_one_never_let_through() {
    let policy = r#"
        allow = ["192.0.2.0/24"]
        block = ["192.0.2.9"]
        [[limit]]
        name = "public"
        quota = "1/h"
    "#;
    let layer = SpillgateLayer::new(gate(policy).0);
    for _ in 0..10 {
        assert_eq!(send(&layer, get("192.0.2.1", "/")).await.status, StatusCode::OK);
        assert_eq!(send(&layer, get("192.0.2.9", "/")).await.status, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn lists_and_policies_change_while_the_layer_is_in_use() {
    let layer = SpillgateLayer::new(gate("[[limit]]\nname = \"public\"\nquota = \"2/h\"").0);
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
    layer.gate().list(ListKind::Block, PEER, Terms::permanent()).await.unwrap();
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::FORBIDDEN);
    layer.gate().unlist(ListKind::Block, PEER).await.unwrap();
    let policy = r#"
        limit = [
            { name = "new", quota = "9/h", per = "global" },
            { name = "public", quota = "3/h" },
        ]
    "#;
    layer.gate().replace(spillgate_policy::Policy::from_toml(policy).unwrap()).unwrap();
    let answer = send(&layer, get(PEER, "/")).await;
    assert_eq!(
        answer.header("ratelimit").unwrap(),
        "\"public\";r=1;t=2400",
        "what was spent stays"
    );
}
