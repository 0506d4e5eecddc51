//! A worker in Rust: does tasks, one at a time. As src/main.rs of a package with the dependencies serde_json = "1" and
//! ureq = { version = "2", features = ["json"] }:
//!
//!     HUB=http://127.0.0.1:19104 SECRET=$(cat luxhub-data/secret) cargo run -- worker-1
//!
//! Write what it does into `work`. A worker that is killed takes its task up again at its next start.
use serde_json::{json, Value};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::{env, thread, time::Duration};

/// Does a task; an error is a failed attempt.
fn work(task: &Value) -> Result<Value, String> {
    let title = task["title"].as_str().unwrap_or("");
    if title.contains("fails") {
        return Err(format!("cannot do {title}"));
    }
    let words = task["description"].as_str().unwrap_or("").split_whitespace().count();
    Ok(json!({ "words": words }))
}

/// Repeats a request until the hub has answered. An error is a refusal, which a repeat would not change.
fn hub(path: &str, mut body: Value) -> Result<Value, String> {
    body["node_id"] = json!(env::args().nth(1).expect("the name of this worker"));
    let url = format!("{}/api/v1/{path}", env::var("HUB").expect("HUB"));
    loop {
        let request = ureq::post(&url).timeout(Duration::from_secs(60));
        match request.set("X-Matrix-Secret", &env::var("SECRET").expect("SECRET")).send_json(&body) {
            Ok(response) => {
                if let Ok(answer) = response.into_json() {
                    return Ok(answer);
                }
            }
            Err(ureq::Error::Status(status, response)) if status < 500 && status != 408 && status != 429 => {
                return Err(format!("{path}: {}", response.into_string().unwrap_or_default()));
            }
            Err(_) => {} // the hub or the network is away
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn main() -> Result<(), String> {
    hub("node/register", json!({ "name": env::args().nth(1) }))?;
    loop {
        let next = hub("task/next", json!({ "wait": 25, "resume": true }))?;
        if next["task"].is_null() {
            continue;
        }
        let (task, epoch) = (&next["task"], next["lease"]["epoch"].clone());
        let held = json!({ "task_id": task["task_id"], "epoch": epoch });
        // The hub takes a task from a worker that is silent. The thread ends with the task.
        let (ended, is_over) = channel::<()>();
        let kept = held.clone();
        thread::spawn(move || {
            while is_over.recv_timeout(Duration::from_secs(30)) == Err(RecvTimeoutError::Timeout) {
                let _ = hub("node/heartbeat", json!({}));
                let _ = hub("task/extend", kept.clone());
            }
        });
        let mut report = held;
        let path = match work(task) {
            Ok(output) => {
                report["result"] = json!({ "problem": task["title"], "improvement": "done", "lesson": "none", "output": output });
                "task/complete"
            }
            Err(error) => {
                report["error"] = json!(error);
                "task/fail"
            }
        };
        if let Err(refusal) = hub(path, report) {
            eprintln!("{refusal}"); // the task was taken away or cancelled: the worker goes on
        }
        drop(ended);
    }
}
