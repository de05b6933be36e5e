//! The command's proxies are those that the contract gives: `ctl/src/door/proxies.rs` is made from
//! `dbus/io.holdfast.Agent1.xml`. After a change of the contract: `HOLDFAST_WRITE=1 cargo test -p holdfast-ctl --test
//! proxies`.

use std::path::PathBuf;

use zbus_xml::Node;
use zbus_xmlgen::CodeGenerator;

#[test]
fn the_proxies_are_made_from_the_contract() {
    let ctl = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let contract = std::fs::read_to_string(ctl.join("../dbus/io.holdfast.Agent1.xml")).unwrap();
    let contract = Node::try_from(contract.as_str()).unwrap();
    let mut code =
        "//! Proxies of the agent's interfaces, made from dbus/io.holdfast.Agent1.xml by ctl/tests/proxies.rs.\n\n\
         #![allow(missing_docs, reason = \"the contract has the words\")]\n\
         #![allow(dead_code, clippy::type_complexity, reason = \"generated\")]\n\nuse zbus::proxy;\n"
            .to_owned();
    for interface in contract.interfaces() {
        code += "\n";
        code += &CodeGenerator::new().with_format(true).interface_code(interface).unwrap();
    }
    let path = ctl.join("src/door/proxies.rs");
    if std::env::var_os("HOLDFAST_WRITE").is_some() {
        std::fs::write(&path, &code).unwrap();
    }
    let now = std::fs::read_to_string(&path).unwrap_or_default();
    // However rustfmt is set.
    let squeeze = |text: &str| text.replace(',', " ").split_whitespace().collect::<String>();
    assert!(squeeze(&now) == squeeze(&code), "run this test with HOLDFAST_WRITE=1 and commit {}", path.display());
}
