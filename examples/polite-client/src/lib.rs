#![doc = include_str!("../../../docs/client.md")]
