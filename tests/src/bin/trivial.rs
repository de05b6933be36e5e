//! `trivial ROWS`: the least that a D-Bus service can be, as a floor for the agent: one object with one method that gives a
//! list of the agent's shape out of memory.

use std::collections::HashMap;

use zbus::{OwnedObjectPath, OwnedVariant, connection, interface};

type Row =
    (String, String, String, String, String, String, String, u64, OwnedObjectPath, HashMap<String, OwnedVariant>);

struct Trivial(Vec<Row>);

#[interface(name = "io.holdfast.Trivial")]
impl Trivial {
    async fn list(&self) -> Vec<Row> {
        self.0.clone()
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> zbus::Result<()> {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(346);
    let connection = connection::Builder::system().serve_at("/", Trivial((0..rows).map(row).collect())).build().await?;
    connection.request_name("io.holdfast.Trivial").await?;
    std::future::pending().await
}

fn row(number: u32) -> Row {
    let text = |text: &str| OwnedVariant::from(zbus::Str::from(text.to_owned()));
    let resource = format!("container/w{number}");
    let sentence =
        format!("{resource} is held: the operator holds w0001: bench; left as it is until w0001 is no longer held");
    let more = HashMap::from([
        ("module".to_owned(), text("w0001")),
        ("resource".to_owned(), text(&resource)),
        ("kind".to_owned(), text("container")),
        ("unit".to_owned(), text("w0001-a.service")),
        ("reason".to_owned(), text("operator")),
        ("cause".to_owned(), text(&resource)),
        ("cause_module".to_owned(), text("w0001")),
        ("sentence".to_owned(), text(&sentence)),
        ("hint".to_owned(), text("holdfast unhold w0001")),
        ("waiting_on_take".to_owned(), OwnedVariant::from(false)),
        ("since_usec".to_owned(), OwnedVariant::from(0_u64)),
    ]);
    let path = OwnedObjectPath::try_from(format!("/io/holdfast/Agent1/hold/w0001/container_2fw{number}"));
    (
        "w0001".to_owned(),
        resource.clone(),
        "operator".to_owned(),
        resource,
        "w0001-a.service".to_owned(),
        sentence,
        "holdfast unhold w0001".to_owned(),
        0,
        path.unwrap_or_default(),
        more,
    )
}
