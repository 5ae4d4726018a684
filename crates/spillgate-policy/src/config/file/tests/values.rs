use super::{check, check_limit};

#[test]
fn an_unknown_key_is_told_with_the_one_that_was_meant_or_all_there_are() {
    check(&[
        ("limits = []", &["1:1: unknown key \"limits\"; did you mean \"limit\"?"]),
        (
            "zone = 1",
            &[
                "1:1: unknown key \"zone\"; known are server, store, proxy, identity, allow, block, path-spelling, limit, override, tier, priority",
            ],
        ),
        (
            "[identity]\ntrusted_proxies = []",
            &["2:1: identity: unknown key \"trusted_proxies\"; did you mean \"trusted-proxies\"?"],
        ),
        (
            "identity.api-key = { header = \"x\", acept = \"any\" }",
            &["1:36: identity, api-key: unknown key \"acept\"; did you mean \"accept\"?"],
        ),
        (
            "identity.user = { header = \"x\", from = 1 }",
            &["1:33: identity, user: unknown key \"from\"; known are accept, header"],
        ),
    ]);
    check_limit(&[
        ("modes = 1", &["4:1: limit \"public\": unknown key \"modes\"; did you mean \"mode\"?"]),
        (
            "match = { paht = \"/\" }",
            &["4:11: limit \"public\", match: unknown key \"paht\"; did you mean \"path\"?"],
        ),
        (
            "cost = { header = \"x\", least = 1 }",
            &["4:24: limit \"public\", cost: unknown key \"least\"; known are default, header"],
        ),
        (
            "settle.statuses = 401",
            &["4:8: limit \"public\", settle: unknown key \"statuses\"; did you mean \"status\"?"],
        ),
    ]);
}

#[test]
fn a_value_of_the_wrong_type_is_told_with_one_that_would_be_right() {
    check(&[
        ("identity = 1", &["1:12: identity is a number; write a table, such as [identity]"]),
        ("allow = true", &["1:9: allow is a boolean; write a list, such as [\"192.0.2.0/24\"]"]),
        (
            "allow = \"192.0.2.7\"",
            &["1:9: allow is a text; write a list, such as [\"192.0.2.0/24\"]"],
        ),
        ("[limit]\nname = 1", &["1:1: limit is a table; write [[limit]] above each"]),
        ("limit = [1]", &["1:10: limit 1 is a number; write a table, such as [[limit]]"]),
        ("[[tier]]\na = 1", &["1:1: tier is a list; write a table, such as [tier.gold]"]),
        (
            "[tier]\ngold = \"10/s\"",
            &["2:8: tier: \"gold\" is a text; write a table, such as [tier.gold]"],
        ),
        (
            "[tier.gold]\npublic = true",
            &[
                "2:10: tier \"gold\": \"public\" is a boolean; write a text, such as \"10/s burst 20\"",
            ],
        ),
        (
            "identity.api-key = \"x-api-key\"",
            &[
                "1:20: identity: api-key is a text; write a table, such as { header = \"x-api-key\" }",
            ],
        ),
        (
            "identity.user = { header = \"x\", accept = 1 }",
            &[
                "1:42: identity, user: accept is a number; write \"trusted-proxies\", \"any\", a list \
               of keys or the name of a file",
            ],
        ),
    ]);
    check_limit(&[
        (
            "capacity = \"many\"",
            &["4:12: limit \"public\": capacity is a text; write a number, such as 100000"],
        ),
        (
            "capacity = 1e5",
            &["4:12: limit \"public\": capacity is a decimal number; write a number, such as \
               100000"],
        ),
        (
            "start = 1979-05-27",
            &["4:9: limit \"public\": start is a date; write a text, such as \"empty\""],
        ),
        ("per = 1", &["4:7: limit \"public\": per is a number; write a text, such as \"caller\""]),
        (
            "per = [\"ip\", [], \"user\", 1]",
            &[
                "4:14: limit \"public\": per, entry 2 is a list; write a text, such as \"caller\"",
                "4:26: limit \"public\": per, entry 4 is a number; write a text, such as \"caller\"",
            ],
        ),
        (
            "match = \"/public\"",
            &["4:9: limit \"public\": match is a text; write a table, such as { path = \
               \"/public\" }"],
        ),
        (
            "match.header.x-beta = true",
            &[
                "4:23: limit \"public\", match, header: \"x-beta\" is a boolean; write a text, such \
               as \"*\"",
            ],
        ),
        (
            "cost = \"1\"",
            &["4:8: limit \"public\": cost is a text; write a number, such as 1, or { header = \
               \"x-cost\" }"],
        ),
        (
            "settle.status = 4.5",
            &["4:17: limit \"public\", settle: status is a decimal number; write a text, such as \
               \"4xx\""],
        ),
        (
            "override = { quota = \"1/s\" }",
            &["4:12: limit \"public\": override is a table; write [[limit.override]] above each"],
        ),
    ]);
}

#[test]
fn a_number_out_of_range_is_told_with_the_range() {
    check(&[
        ("identity.ipv4-prefix = 33", &["1:24: identity: ipv4-prefix is 33; write at most 32"]),
        ("identity.ipv4-prefix = 300", &["1:24: identity: ipv4-prefix is 300; write at most 32"]),
        ("identity.ipv6-prefix = -1", &["1:24: identity: ipv6-prefix is -1; write at least 0"]),
    ]);
    check_limit(&[
        ("capacity = -5", &["4:12: limit \"public\": capacity is -5; write at least 0"]),
        (
            "capacity = 0x1_0000_0000_0000_0000",
            &["4:12: limit \"public\": capacity is 0x10000000000000000; write at most \
               18446744073709551615"],
        ),
        (
            "cost = -99999999999999999999999999999999999999999999",
            &[
                "4:8: limit \"public\": cost is -99999999999999999999999999999999999999999999; write \
               at least 0",
            ],
        ),
        (
            "cost = { header = \"x\", default = 0 }",
            &["4:34: limit \"public\", cost: default is 0; write at least 1"],
        ),
        (
            "settle.status = [401, 42]",
            &["4:23: limit \"public\", settle: status, entry 2 is 42; write at least 100"],
        ),
        ("capacity = 18446744073709551615\ncost = +0", &[]),
    ]);
}

#[test]
fn an_empty_list_is_refused_where_nothing_is_no_choice() {
    check(&[
        ("allow = []\nblock = []\nlimit = []\ntier.gold.callers = []", &[]),
        ("identity = { trusted-proxies = [], client-ip = [] }", &[]),
        (
            "identity.order = []",
            &["1:18: identity: order is an empty list; write [\"ip\"], or leave it out"],
        ),
    ]);
    check_limit(&[
        (
            "per = []",
            &["4:7: limit \"public\": per is an empty list; write [\"caller\"], or leave it out"],
        ),
        (
            "match = { path = [], method = [], host = [], header = {} }",
            &[
                "4:18: limit \"public\", match: path is an empty list; write [\"/users/{id}\"], or \
                 leave it out",
                "4:31: limit \"public\", match: method is an empty list; write [\"GET\"], or leave \
                 it out",
                "4:42: limit \"public\", match: host is an empty list; write \
                 [\"api.example.com\"], or leave it out",
            ],
        ),
        (
            "settle.status = []",
            &[
                "4:17: limit \"public\", settle: status is an empty list; write [\"4xx\"], or leave \
               it out",
            ],
        ),
    ]);
}

#[test]
fn an_unknown_mode_is_told_with_all_there_are() {
    check_limit(&[
        (
            "mode = \"shadwo\"",
            &[
                "4:8: limit \"public\": mode is \"shadwo\"; write \"enforce\" or \"shadow\"; did you \
               mean \"shadow\"?",
            ],
        ),
        (
            "mode = \"off\"",
            &["4:8: limit \"public\": mode is \"off\"; write \"enforce\" or \"shadow\""],
        ),
        (
            "mode = false",
            &["4:8: limit \"public\": mode is a boolean; write \"enforce\" or \"shadow\""],
        ),
    ]);
}

#[test]
fn an_expiry_is_a_time_with_its_zone() {
    check(&[
        ("block = [{ entry = \"a\", expires = 2027-01-01T00:00:00Z }]", &[]),
        ("block = [{ entry = \"a\", expires = \"2027-01-01T00:00:00+02:00\" }]", &[]),
        ("block = [{ entry = \"a\", expires = 1971-01-01T00:00:00Z, comment = \"old\" }]", &[]),
        (
            "block = [\"a\", { entry = \"a\", expires = 2027-01-01T00:00:00 }]",
            &["1:40: block, entry 2: expires: 2027-01-01T00:00:00 has no zone; write \
               2027-01-01T00:00:00Z for UTC, or an offset"],
        ),
        (
            "allow = [{ entry = \"a\", expires = 2027-01-01 }]",
            &[
                "1:35: allow, entry 1: expires: 2027-01-01 is not a whole time; write a date, a time \
               and a zone, such as 2027-01-01T00:00:00Z",
            ],
        ),
        (
            "allow = [{ entry = \"a\", expires = \"1h\" }]",
            &[
                "1:35: allow, entry 1: expires: \"1h\" is no time; write a date, a time and a zone, \
               such as 2027-01-01T00:00:00Z",
            ],
        ),
        (
            "allow = [{ entry = \"a\", expires = 1798761600 }]",
            &["1:35: allow, entry 1: expires is a number; write a time, such as \
               2027-01-01T00:00:00Z"],
        ),
        (
            "allow = [{ expires = 2027-01-01T00:00:00Z }]",
            &["1:10: allow, entry 1 has no entry; add entry = \"192.0.2.0/24\""],
        ),
        (
            "allow = [{ entry = \"a\", until = 1 }]",
            &["1:25: allow, entry 1: unknown key; known are expires, comment, entry"],
        ),
        (
            "allow = [{ entry = \"a\", comment = 1 }]",
            &["1:35: allow, entry 1: comment is a number; write a text, such as \
               \"why it is there\""],
        ),
    ]);
    check_limit(&[(
        "override = [{ caller = \"a\", quota = \"1/s\", expires = true }]",
        &["4:54: limit \"public\", override 1: expires is a boolean; write a time, such as \
           2027-01-01T00:00:00Z"],
    )]);
}
