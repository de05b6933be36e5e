use std::collections::{BTreeMap, BTreeSet};

use super::{Generated, Marker, MarkerError, generated, markers, placeholder, scripts, target, waiting_module};
use crate::hold::{Cause, Hold, Reason};
use crate::plan::Scope;
use crate::resource::ResourceKey;

/// `module kind/name reason unit`, with `take` at the end where it waits on one.
fn hold(line: &str) -> Hold {
    let words: Vec<&str> = line.split(' ').collect();
    let resource: ResourceKey = words[1].parse().unwrap();
    Hold {
        module: words[0].to_owned(),
        resource: resource.clone(),
        unit: Some(words[3].to_owned()).filter(|unit| unit != "-"),
        reason: words[2].parse().unwrap(),
        also: BTreeSet::new(),
        cause: Cause { module: words[0].to_owned(), resource },
        sentence: String::new(),
        hint: None,
        waiting_on_take: words.get(4) == Some(&"take"),
    }
}

fn made(there: &BTreeMap<String, Vec<u8>>, holds: &[&str], scope: &Scope) -> BTreeMap<String, Vec<u8>> {
    markers(there, &holds.iter().map(|line| hold(line)).collect::<Vec<_>>(), scope)
}

fn fresh(holds: &[&str]) -> BTreeMap<String, Vec<u8>> {
    made(&BTreeMap::new(), holds, &Scope::All)
}

fn parsed(markers: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Marker> {
    markers.iter().map(|(name, content)| (name.clone(), Marker::parse(content).unwrap())).collect()
}

fn names(markers: &BTreeMap<String, Vec<u8>>) -> Vec<&str> {
    markers.keys().map(String::as_str).collect()
}

fn only(modules: &[&str]) -> Scope {
    Scope::Only(modules.iter().map(|module| (*module).to_owned()).collect())
}

/// The placeholder of one hold.
fn of(line: &str) -> Option<String> {
    let (name, marker) = parsed(&fresh(&[line])).pop_first()?;
    placeholder(&name, &marker)
}

const WEB: &str = "shop container/web needs-held web.service take";
const DATA: &str = "shop directory//srv/shop found - take";
const MAIL: &str = "mail container/mail masked mail.service";

#[test]
fn a_marker_for_each_held_unit_and_each_module_that_waits() {
    let markers = fresh(&[WEB, DATA, MAIL]);
    assert_eq!(names(&markers), ["holdfast-held@shop.target", "mail.service", "web.service"]);
    let text = |name: &str| String::from_utf8(markers[name].clone()).unwrap();
    assert_eq!(
        text("mail.service"),
        "{\"schema\":1,\"holds\":[{\"module\":\"mail\",\"reason\":\"masked\",\"resource\":\"container/mail\",\
         \"waiting_on_take\":false}]}\n"
    );
    assert_eq!(parsed(&markers)["holdfast-held@shop.target"].holds.len(), 2);
    assert_eq!(made(&markers, &[WEB, DATA, MAIL], &Scope::All), markers, "nothing changed");
    // A module may wait without any unit.
    assert_eq!(names(&fresh(&[DATA])), ["holdfast-held@shop.target"]);
}

#[test]
fn other_modules_keep_their_markers() {
    let both = fresh(&[WEB, MAIL, "mail container/web claimed-twice web.service"]);
    // The shop has no holds any more; the mail module was not asked for.
    let left = made(&both, &[], &only(&["shop"]));
    assert_eq!(names(&left), ["mail.service", "web.service"]);
    let modules: Vec<String> = parsed(&left)["web.service"].holds.iter().map(|mark| mark.module.clone()).collect();
    assert_eq!(modules, ["mail"]);
    assert_eq!(names(&made(&both, &[], &Scope::All)), [""; 0]);
    // Without the directory a later apply knows of its own modules only.
    assert_eq!(names(&made(&BTreeMap::new(), &[MAIL], &only(&["mail"]))), ["mail.service"]);
}

#[test]
fn what_is_no_marker_is_cleared_away_by_an_apply_of_all() {
    let garbage: BTreeMap<String, Vec<u8>> = [("x.service", b"{".to_vec()), ("web.service", b"".to_vec())]
        .map(|(name, content)| (name.to_owned(), content))
        .into();
    assert_eq!(names(&made(&garbage, &[WEB], &Scope::All)), ["holdfast-held@shop.target", "web.service"]);
    let scoped = made(&garbage, &[WEB], &only(&["shop"]));
    assert_eq!(names(&scoped), ["holdfast-held@shop.target", "web.service", "x.service"]);
    assert!(Marker::parse(&scoped["web.service"]).is_ok());
}

#[test]
fn names_that_lead_elsewhere_have_no_marker() {
    let long = format!("m container/x found {}.service", "x".repeat(248));
    for line in [
        "m container/x found ../../x.service",
        "m container/x found .service",
        "m container/x found .hidden.service",
        "m container/x found @.service",
        "m container/x found x",
        "m container/x found x.",
        "m container/x found %i.service",
        "m container/x found ä.service",
        &long,
        // These names are ours.
        "m unit/x vendor-unit holdfast-held@x.target",
    ] {
        assert_eq!(names(&fresh(&[line])), [""; 0], "{line}");
    }
    // A directory may have any name; a target may not.
    assert_eq!(names(&fresh(&["A_b container/x unreadable x.service take"])), ["x.service"]);
}

#[test]
fn versions_are_not_guessed() {
    let error = |text: &str| Marker::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(error("{\"schema\":2,\"units\":[]}"), MarkerError::Schema(2)));
    let unknown = "{\"schema\":1,\"holds\":[{\"module\":\"m\",\"reason\":\"bored\",\"resource\":\"unit/x\",\"waiting_on_take\":true}]}";
    for text in ["", "{", "[]", "\u{0}", "{\"schema\":\"1\"}", "{\"schema\":1}", unknown] {
        assert!(matches!(error(text), MarkerError::Content(_)), "{text}");
    }
}

#[test]
fn a_placeholder_says_why_and_never_starts() {
    assert_eq!(
        of(MAIL).unwrap(),
        "# Made by holdfast-generator. Any other unit of this name comes before it.\n\
         [Unit]\n\
         Description=mail.service (held for module mail: masked)\n\
         Documentation=man:holdfastd(8) man:holdfast(1)\n\
         SourcePath=/var/lib/holdfast/held/mail.service\n\
         AssertPathExists=!/var/lib/holdfast/held/mail.service\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart=/bin/false\n"
    );
    let markers = parsed(&fresh(&[WEB, "mail container/web claimed-twice web.service"]));
    let text = placeholder("web.service", &markers["web.service"]).unwrap();
    let description = "Description=web.service (held for module mail: claimed-twice; \
        held for module shop: needs-held, waiting on take)\n";
    assert!(text.contains(description), "{text}");
    // A directory's name says nothing to systemd.
    let odd = Marker::parse(
        b"{\"schema\":1,\"holds\":[{\"module\":\"%n\\nExecStart=/bin/x\\\\\",\"reason\":\"unreadable\",\"resource\":\"unit/x\",\
          \"waiting_on_take\":false}]}",
    );
    let text = placeholder("x.service", &odd.unwrap()).unwrap();
    assert!(text.contains("(held for module %%n?ExecStart=/bin/x?: unreadable)\n"), "{text}");
}

#[test]
fn only_what_harms_nobody_has_a_placeholder() {
    let section = |unit: &str| {
        let text = of(&format!("m unit/x operator {unit}"))?;
        assert!(text.contains(&format!("\nAssertPathExists=!/var/lib/holdfast/held/{unit}\n")), "{text}");
        Some(text.lines().filter(|line| line.starts_with('[')).skip(1).collect::<String>())
    };
    for (unit, has) in [
        ("x.service", Some("[Service]")),
        ("x@.service", Some("[Service]")),
        ("x.timer", Some("[Timer]")),
        ("x.socket", Some("[Socket]")),
        ("x.path", Some("[Path]")),
        ("x.target", Some("")),
        // It would come before a real template.
        ("x@y.service", None),
        // Everything below it would require it.
        ("srv-x.mount", None),
        ("x.slice", None),
        ("x.device", None),
    ] {
        assert_eq!(section(unit).as_deref(), has, "{unit}");
    }
    let nobody = Marker { schema: 1, holds: BTreeSet::new() };
    assert_eq!(placeholder("x.service", &nobody), None);
}

#[test]
fn a_module_that_waits_has_a_target_after_its_units() {
    let markers = fresh(&[
        WEB,
        DATA,
        MAIL,
        "shop container/b needs-held b.service take",
        "shop container/t needs-held t@.service take",
        "shop container/m masked m.service",
        "route-proxy network/x found - take",
    ]);
    let generated = generated(&parsed(&markers));
    let after = generated["holdfast-held@shop.target.d/50-held.conf"].clone();
    assert_eq!(after, Generated::File("[Unit]\nAfter=b.service web.service\n".to_owned()));
    let wants: Vec<&str> = generated.keys().filter_map(|path| path.strip_prefix("multi-user.target.wants/")).collect();
    assert_eq!(wants, ["holdfast-held@route-proxy.target", "holdfast-held@shop.target"]);
    assert!(!generated.contains_key("holdfast-held@route-proxy.target.d/50-held.conf"), "nothing to be after");
    assert_eq!(
        generated["multi-user.target.wants/holdfast-held@shop.target"],
        Generated::Link("../holdfast-held@.target".to_owned())
    );
    let files: Vec<&String> = generated.keys().filter(|path| !path.contains("holdfast-held")).collect();
    assert_eq!(files, ["b.service", "m.service", "mail.service", "t@.service", "web.service"]);
}

#[test]
fn services_may_have_scripts() {
    assert_eq!(scripts("web.service"), ["/etc/init.d/web", "/etc/init.d/web.sh"]);
    for none in ["web.timer", "web@.service", "../web.service", "holdfast-held@web.target"] {
        assert_eq!(scripts(none), [""; 0], "{none}");
    }
}

#[test]
fn targets_and_modules() {
    assert_eq!(target("route-proxy").as_deref(), Some("holdfast-held@route-proxy.target"));
    assert_eq!(target("no module"), None);
    assert_eq!(waiting_module("holdfast-held@route-proxy.target"), Some("route-proxy"));
    assert_eq!(waiting_module("web.service"), None);
    assert_eq!(Reason::ALL.len(), fresh_reasons().len(), "every reason can stand in a marker");
}

fn fresh_reasons() -> BTreeSet<Vec<u8>> {
    let each =
        Reason::ALL.iter().map(|reason| fresh(&[&format!("m container/x {reason} x.service")])["x.service"].clone());
    each.inspect(|marker| assert!(Marker::parse(marker).is_ok())).collect()
}
