use std::num::NonZeroU32;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use spillgate::algorithm::Algorithm as _;
use spillgate::{AlgorithmKind, Quota, Timestamp};
use spillgate_policy::{Gate, Policy};
use spillgate_redis::backend::{Entry, Op};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::script::{self, Keys, encode_entry};
use spillgate_redis::{Name, RedisStore, Settings as Sharing, Terms};
use tokio::runtime::{Builder, Runtime};

use crate::Result;
use crate::settings::Settings;
use crate::standalone::{Program, Running};

/// A Redis, a node that shares limits through it, and a client that does nothing but ask.
pub struct Bed {
    pub runtime: Runtime,
    /// Runs for as long as this lives.
    pub redis: Running,
    pub gate: Gate<RedisStore<Client>>,
    pub client: MultiplexedConnection,
    pub bare: Bare,
    /// As whom the node is asked.
    pub callers: Vec<String>,
}

/// What the node sends, to be sent without it.
pub struct Bare {
    /// What Redis knows the script by.
    pub script: String,
    /// The keys, and what the script is asked about each.
    pub calls: Vec<(Vec<u8>, Vec<u8>)>,
}

/// How many callers take turns under a limit.
pub const CALLERS: usize = 1_000;

/// More than can be asked for.
const PLENTY: u64 = 10_000_000;

impl Bed {
    pub fn new(settings: &Settings) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let redis = Program::Redis.start(&settings.programs)?;
        let url = format!("redis://127.0.0.1:{}", redis.resp);
        let (gate, client, bare) = runtime.block_on(async {
            let mut client =
                redis::Client::open(url.as_str())?.get_multiplexed_async_connection().await?;
            let bare = Bare::load(&mut client).await?;
            Result::Ok((gate(&url).await?, client, bare))
        })?;
        let callers = (0..CALLERS).map(|caller| format!("caller {caller}")).collect();
        Ok(Self { runtime, redis, gate, client, bare, callers })
    }
}

async fn gate(url: &str) -> Result<Gate<RedisStore<Client>>> {
    // A turn with hundreds of tasks on two processors is no outage.
    let options = Options::new(url)?.command_time_out(Duration::from_secs(1));
    let client = Client::connect(options).await?;
    let store = RedisStore::new(client, &Sharing::default().nodes(NonZeroU32::MIN))?;
    Ok(Gate::with_store(Policy::from_toml(&policy())?, store)?)
}

fn policy() -> String {
    let limit = |name, quota: &str, sharing| {
        format!(
            "[[limit]]\nname = '{name}'\nby-name = true\nper = 'user'\nquota = '{quota}'\nsharing = '{sharing}'\n"
        )
    };
    let plenty = format!("{PLENTY}/s burst {PLENTY}");
    [
        limit("strict", &plenty, "strict"),
        limit("leased", &plenty, "leased"),
        limit("hourly", "1/h", "strict"),
        limit("rare", "2/s burst 1", "strict"),
    ]
    .concat()
}

impl Bare {
    async fn load(client: &mut MultiplexedConnection) -> Result<Self> {
        let script = redis::Script::new(script::RUN);
        script.prepare_invoke().load_async(client).await?;
        let quota = Quota::per_second(PLENTY).burst(PLENTY).build()?;
        let terms = Terms::new(AlgorithmKind::TokenBucket, quota);
        let algorithm = terms.algorithm()?;
        let fresh = algorithm.fresh(Timestamp::ZERO);
        let keys = Keys::new("bare:");
        let call = |caller: usize| {
            let name = Name::from_bytes((caller as u128).to_be_bytes());
            let op = Op::Spend { cost: 1, is_shadow: false };
            let asked = encode_entry(&Entry { name, terms, algorithm, fresh, op })?;
            Result::Ok((keys.state(&name).to_vec(), asked.to_vec()))
        };
        let calls = (0..CALLERS).map(call).collect::<Result<_>>()?;
        Ok(Self { script: script.get_hash().to_owned(), calls })
    }
}
