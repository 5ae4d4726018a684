use redis::cmd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance, sleep};

use super::*;

const TIME_OUT: Duration = Duration::from_millis(50);

/// A multiplexer, and the server's end of its connection.
fn connect() -> (Arc<Multiplexer>, DuplexStream) {
    let (near, far) = duplex(1 << 16);
    let (multiplexer, driver) = Multiplexer::new(near, Arc::default());
    tokio::spawn(driver);
    (Arc::new(multiplexer), far)
}

fn ping(multiplexer: &Arc<Multiplexer>, number: usize) -> JoinHandle<Result<Answer, RedisError>> {
    let multiplexer = Arc::clone(multiplexer);
    tokio::spawn(async move {
        let mut ping = cmd("PING");
        ping.arg(number);
        multiplexer.call(&ping, Some(TIME_OUT), None).await
    })
}

/// Reads calls until there are so many.
async fn receive(far: &mut DuplexStream, calls: usize) {
    let mut text = Vec::new();
    while text.windows(4).filter(|part| part == b"PING").count() < calls {
        far.read_buf(&mut text).await.unwrap();
    }
}

#[tokio::test]
async fn calls_are_answered_in_the_order_in_which_they_were_left() {
    let (multiplexer, mut far) = connect();
    let calls: Vec<_> = (0..100).map(|number| ping(&multiplexer, number)).collect();
    receive(&mut far, 100).await;
    for number in 0..100 {
        // In pieces, as a network may have it.
        let answer = format!("${}\r\n{number}\r\n", number.to_string().len());
        for byte in answer.as_bytes() {
            far.write_all(&[*byte]).await.unwrap();
            yield_now().await;
        }
    }
    for (number, call) in calls.into_iter().enumerate() {
        let Value::BulkString(bytes) = call.await.unwrap().unwrap().value else { panic!() };
        assert_eq!(bytes, number.to_string().as_bytes());
    }
}

#[tokio::test]
async fn calls_that_belong_together_are_answered_together() {
    let (multiplexer, mut far) = connect();
    let server = async |far: &mut DuplexStream, calls, answers: &str| {
        receive(far, calls).await;
        far.write_all(answers.as_bytes()).await.unwrap();
    };
    let mut calls = Pipeline::new();
    calls.cmd("PING").cmd("PING").cmd("PING");
    let serving = server(&mut far, 3, "+OK\r\n-ERR no\r\n:3\r\n");
    let (answered, ()) = tokio::join!(multiplexer.call_all(&calls, None, None), serving);
    let (values, _) = answered.unwrap();
    assert_eq!(values.len(), 3);
    assert_eq!(values[2], Value::Int(3));
    let mut one = Pipeline::new();
    one.cmd("PING");
    let serving = server(&mut far, 1, "*1\r\n:1\r\n");
    let (answered, ()) = tokio::join!(multiplexer.call_all(&one, None, None), serving);
    assert_eq!(answered.unwrap().0, [Value::Array(vec![Value::Int(1)])]);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_late_after_its_time_and_the_next_one_is_not() {
    let (multiplexer, mut far) = connect();
    let begin = Instant::now();
    let late = ping(&multiplexer, 1);
    sleep(TIME_OUT / 2).await;
    let next = ping(&multiplexer, 2);
    assert!(late.await.unwrap().unwrap_err().is_timeout());
    assert!(begin.elapsed() >= TIME_OUT && begin.elapsed() < TIME_OUT * 5 / 4);
    // The answer that came too late is not taken for the other one's.
    far.write_all(b":1\r\n:2\r\n").await.unwrap();
    assert_eq!(next.await.unwrap().unwrap().value, Value::Int(2));
}

#[tokio::test(start_paused = true)]
async fn a_call_after_one_that_may_take_longer_is_late_in_time() {
    for patience in [None, Some(TIME_OUT * 1000)] {
        let (multiplexer, mut far) = connect();
        let patient = Arc::clone(&multiplexer);
        let patient = tokio::spawn(async move { patient.call(&cmd("PING"), patience, None).await });
        receive(&mut far, 1).await;
        for answers in [":1\r\n:2\r\n", ":3\r\n"] {
            let begin = Instant::now();
            assert!(ping(&multiplexer, 2).await.unwrap().unwrap_err().is_timeout());
            assert!(begin.elapsed() < TIME_OUT * 2);
            far.write_all(answers.as_bytes()).await.unwrap();
        }
        assert_eq!(patient.await.unwrap().unwrap().value, Value::Int(1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_arrived_is_in_time_however_late_we_look() {
    let (multiplexer, mut far) = connect();
    let call = ping(&multiplexer, 1);
    receive(&mut far, 1).await;
    // Nothing of ours runs between the two.
    far.write_all(b":1\r\n").await.unwrap();
    advance(TIME_OUT * 100).await;
    assert_eq!(call.await.unwrap().unwrap().value, Value::Int(1));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_begins_when_it_is_written() {
    let (multiplexer, mut far) = connect();
    let mut call = cmd("PING");
    call.arg(1);
    // It is left here, but what writes it has had no turn.
    let write = |bytes: &mut Vec<u8>| call.write_packed_command(bytes);
    let answer = multiplexer.enqueue((1, Some(TIME_OUT), None), write);
    advance(TIME_OUT * 100).await;
    receive(&mut far, 1).await;
    sleep(TIME_OUT / 2).await;
    far.write_all(b":1\r\n").await.unwrap();
    assert_eq!(answer.unwrap().await.unwrap().unwrap().value, Value::Int(1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_nothing_is_late_too() {
    let (near, _far) = duplex(8);
    let (multiplexer, driver) = Multiplexer::new(near, Arc::default());
    tokio::spawn(driver);
    let late = ping(&Arc::new(multiplexer), 1);
    assert!(late.await.unwrap().unwrap_err().is_timeout());
}

#[tokio::test]
async fn calls_on_a_connection_that_ends_are_lost_and_so_are_later_ones() {
    let (multiplexer, mut far) = connect();
    let call = ping(&multiplexer, 1);
    receive(&mut far, 1).await;
    drop(far);
    assert_eq!(call.await.unwrap().unwrap_err().kind(), redis::ErrorKind::Io);
    let later = ping(&multiplexer, 2).await.unwrap();
    assert_eq!(later.unwrap_err().kind(), redis::ErrorKind::Io);
}

#[tokio::test]
async fn answers_that_nobody_asked_for_end_the_connection() {
    for text in ["+OK\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let (multiplexer, mut far) = connect();
        far.write_all(text.as_bytes()).await.unwrap();
        yield_now().await;
        let lost = ping(&multiplexer, 1).await.unwrap();
        assert!(lost.is_err());
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_takes_its_answer_along() {
    let (multiplexer, mut far) = connect();
    let (first, second) = (ping(&multiplexer, 1), ping(&multiplexer, 2));
    receive(&mut far, 2).await;
    first.abort();
    far.write_all(b":1\r\n:2\r\n").await.unwrap();
    assert_eq!(second.await.unwrap().unwrap().value, Value::Int(2));
}
