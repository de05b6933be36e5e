use std::collections::{BTreeMap, BTreeSet};

use super::holds::Holds;
use super::view::View;
use super::{Dress, LastApply, Sources, State, Status};
use crate::desired::{Body, Desired, Need, Resource};
use crate::hold::{Cause, Hold, Reason};
use crate::ledger::{Entry, HoldRecord, Ledger};
use crate::name::{HostPath, ModuleName};
use crate::observed::{Container, Observed, Unit};
use crate::plan::{Change, Note, Plan, Planned};
use crate::quadlet::QuadletFacts;
use crate::resource::{Kind, ResourceKey};

type Test = Result<(), Box<dyn std::error::Error>>;

/// A host under construction: what is asked, planned, seen and ours grows together.
#[derive(Default)]
struct Host {
    desired: Desired,
    observed: Observed,
    plan: Plan,
    ledger: Ledger,
    last: Option<LastApply>,
}

impl Host {
    fn sources(&self) -> Sources<'_> {
        Sources { desired: &self.desired, observed: &self.observed, plan: &self.plan, ledger: &self.ledger }
    }

    fn status(&self) -> Status {
        Status::of(&self.sources(), self.last.clone())
    }

    fn text(&self) -> String {
        self.status().text(&Dress::PLAIN).to_string()
    }

    fn desire(&mut self, module: &str, key: &str, needs: &[&str]) -> &mut Resource {
        let key: ResourceKey = key.parse().unwrap();
        let needs = needs.iter().map(|need| Need::Resource { module: module.into(), key: need.parse().unwrap() });
        let unit = (key.kind == Kind::Container).then(|| format!("{}.service", key.name));
        let resource = Resource {
            source: format!("{}.{}", key.name, key.kind),
            unit,
            object: Some(key.name.clone()),
            body: Body::Quadlet {
                path: HostPath::root(),
                text: String::new(),
                assets: BTreeMap::new(),
                hash: String::new(),
            },
            needs: needs.collect(),
            facts: QuadletFacts { wanted_at_boot: key.kind == Kind::Container, ..QuadletFacts::default() }.into(),
            troubles: Vec::new(),
        };
        let resources = &mut self.desired.modules.entry(module.into()).or_default().resources;
        resources.insert(key.clone(), resource);
        resources.get_mut(&key).unwrap()
    }

    fn plan(&mut self, module: &str, key: &str, change: Change, because: &str) {
        let key: ResourceKey = key.parse().unwrap();
        let unit = (key.kind == Kind::Container).then(|| format!("{}.service", key.name));
        let planned = Planned { change, unit, image: None, because: because.into(), object: None };
        self.plan.resources.entry(module.into()).or_default().insert(key, planned);
    }

    fn hold(&mut self, module: &str, key: &str, reason: Reason, cause: &str, clause: &str) -> &mut Hold {
        self.plan.holds.push(Hold {
            module: module.into(),
            resource: key.parse().unwrap(),
            unit: None,
            reason,
            also: BTreeSet::new(),
            cause: Cause { module: module.into(), resource: cause.parse().unwrap() },
            sentence: format!("{key} is held: {clause}; not run until {module} is taken"),
            hint: None,
            waiting_on_take: false,
        });
        self.plan.holds.last_mut().unwrap()
    }

    fn ours(&mut self, module: &str, key: &str) -> &mut Entry {
        let module = self.ledger.module_mut(&ModuleName::new(module).unwrap());
        module.resources.entry(key.parse().unwrap()).or_default()
    }

    fn container(&mut self, name: &str, state: &str, health: Option<&str>) {
        let container = Container { state: state.into(), health: health.map(str::to_owned), ..Container::default() };
        self.observed.containers.insert(name.into(), container);
    }

    /// A container of ours that is as asked for and runs.
    fn fine(&mut self, module: &str, name: &str) {
        let key = format!("container/{name}");
        self.desire(module, &key, &[]);
        self.plan(module, &key, Change::Unchanged, "");
        self.ours(module, &key);
        self.container(name, "running", None);
    }
}

/// The surface that an operator reads at night: counts, then a line for each module that is not fine, the worst first.
#[test]
fn three_in_the_morning() {
    let mut host = Host::default();
    host.observed.taken_usec = 31402;
    host.last = Some(LastApply { report: "9f3c000011112222".into(), finished_usec: 31244, ..LastApply::default() });
    host.fine("web", "web");
    for name in ["ca", "proxy"] {
        let key = format!("container/{name}");
        host.desire("route-proxy", &key, &[]);
        let clause = "it would mount /var/lib/route-proxy/ca, found on this host";
        let hold = host.hold("route-proxy", &key, Reason::NeedsHeld, "directory//var/lib/route-proxy/ca", clause);
        hold.waiting_on_take = true;
    }
    let path = "directory//var/lib/route-proxy/ca";
    host.hold("route-proxy", path, Reason::Found, path, "/var/lib/route-proxy/ca found on this host").waiting_on_take =
        true;
    host.hold("route-proxy", "volume/acme", Reason::Found, "volume/acme", "it exists and is foreign").waiting_on_take =
        true;
    host.fine("forge", "forge");
    host.plan.resources.remove("forge");
    host.hold("forge", "container/forge", Reason::Downgrade, "container/forge", "runs 1.27.3, pin says 1.22.6");

    assert_eq!(
        host.text(),
        "held: 1 of 6 resource(s) applied, 5 held, 0 failed   (looked at 31402; last apply 31244, report 9f3c0000)\n\
         \u{20} route-proxy  waiting on take  0 of 2 containers run  4 held   /var/lib/route-proxy/ca found on this host (+1)\n\
         \u{20} forge        held: downgrade  1 of 1 runs as before  1 held   container/forge: runs 1.27.3, pin says 1.22.6\n\
         Hint: holdfast holds route-proxy\n"
    );
    assert_eq!(host.status().exit_status(), 6);
}

#[test]
fn all_fine_is_one_line() {
    let mut host = Host::default();
    host.fine("web", "web");
    assert_eq!(host.text(), "applied: 1 of 1 resource(s) applied, 0 held, 0 failed   (looked at 0; no apply yet)\n");
    assert_eq!(host.status().exit_status(), 0);
    assert_eq!(Host::default().text(), "applied: no module is assigned   (looked at 0; no apply yet)\n");
}

/// The plan may call a resource unchanged although its container is down: the container decides.
#[test]
fn the_running_container_decides() {
    let table = [
        ("running", None, State::Applied, 1, 0),
        ("running", Some("healthy"), State::Applied, 1, 0),
        ("running", Some("starting"), State::Pending, 1, 6),
        ("running", Some("unhealthy"), State::Failed, 1, 1),
        ("exited", None, State::Failed, 0, 1),
        ("created", None, State::Failed, 0, 1),
    ];
    for (state, health, expected, running, exit) in table {
        let mut host = Host::default();
        host.fine("web", "web");
        host.container("web", state, health);
        let status = host.status();
        assert_eq!(status.state(), expected, "{state} {health:?}");
        assert_eq!(status.modules[0].running, running, "{state} {health:?}");
        assert_eq!(status.exit_status(), exit, "{state} {health:?}");
        if expected == State::Pending {
            assert_eq!(status.modules[0].hint.as_deref(), Some("systemctl status web.service"));
        }
    }
}

#[test]
fn a_container_that_is_not_ours_does_not_count_as_running() {
    let mut host = Host::default();
    host.desire("photos", "container/photos", &[]);
    host.container("photos", "running", None);
    host.hold("photos", "container/photos", Reason::Found, "container/photos", "container photos is foreign");
    let status = host.status();
    assert_eq!((status.modules[0].wanted, status.modules[0].running), (1, 0));
}

#[test]
fn failed_beats_held_and_keeps_the_numbers_straight() {
    let mut host = Host::default();
    host.fine("good", "good");
    host.hold("late", "container/late", Reason::Found, "container/late", "container late is foreign");
    host.desire("bad", "container/bad", &[]);
    host.plan("bad", "container/bad", Change::Create, "it is not there");
    let failed =
        (("bad".to_owned(), ResourceKey::new(Kind::Container, "bad")), "start bad.service: timeout".to_owned());
    host.last = Some(LastApply { failed: BTreeMap::from([failed]), ..LastApply::default() });
    let status = host.status();
    assert_eq!(status.exit_status(), 3);
    let counts = status.counts;
    assert_eq!((counts.total, counts.applied, counts.held, counts.failed), (3, 1, 1, 1));
    assert_eq!(status.modules[0].name, "bad");
    assert_eq!(status.modules[0].cause.as_deref(), Some("start bad.service: timeout"));
    assert_eq!(status.modules[0].hint.as_deref(), Some("journalctl -u bad.service"));
}

/// What failed once and is so now did not fail: the look decides, not the report.
#[test]
fn an_old_failure_is_no_failure() {
    let mut host = Host::default();
    host.fine("web", "web");
    let failed = (("web".to_owned(), ResourceKey::new(Kind::Container, "web")), "start: timeout".to_owned());
    host.last = Some(LastApply { failed: BTreeMap::from([failed]), ..LastApply::default() });
    assert_eq!(host.status().exit_status(), 0);
}

#[test]
fn pending_stopped_and_removed_are_no_success() {
    let mut host = Host::default();
    host.fine("web", "web");
    host.plan("web", "file//etc/web.conf", Change::Change, "/etc/web.conf changed in the module");
    assert_eq!((host.status().state(), host.status().exit_status()), (State::Pending, 6));
    assert!(
        host.text().starts_with("pending: 1 of 2 resource(s) applied, 0 held, 0 failed, 1 pending"),
        "{}",
        host.text()
    );

    let mut host = Host::default();
    host.fine("web", "web");
    host.container("web", "exited", None);
    host.plan.notes.push(Note {
        module: "web".into(),
        resource: ResourceKey::new(Kind::Container, "web"),
        note: "stopped-by-operator".into(),
        sentence: "web.service was stopped by the operator".into(),
        unit: Some("web.service".into()),
    });
    assert_eq!((host.status().state(), host.status().exit_status()), (State::Stopped, 6));
    assert!(host.text().contains("Hint: systemctl start web.service"), "{}", host.text());

    let mut host = Host::default();
    host.fine("web", "web");
    host.plan("web", "volume/old", Change::Remove, "old.volume is gone from the module");
    let status = host.status();
    assert_eq!((status.counts.total, status.counts.to_remove, status.exit_status()), (1, 1, 6));
}

#[test]
fn a_failed_unit_of_ours_is_failed_and_a_foreign_one_is_not() {
    let mut host = Host::default();
    host.desire("web", "container/web", &[]);
    host.plan("web", "container/web", Change::Change, "web.service does not run");
    let failed = Unit { active_state: "failed".into(), ..Unit::default() };
    host.observed.units.insert("web.service".into(), failed);
    assert_eq!(host.status().state(), State::Pending);
    host.ours("web", "container/web");
    assert_eq!(host.status().state(), State::Failed);
}

/// A container is wanted by its [Install], by what needs it, or by its pod; a job that ends is not.
#[test]
fn what_is_wanted() {
    let mut host = Host::default();
    host.desire("m", "container/front", &["container/back"]);
    facts(host.desire("m", "container/back", &[])).wanted_at_boot = false;
    facts(host.desire("m", "container/spare", &[])).wanted_at_boot = false;
    facts(host.desire("m", "container/job", &[])).oneshot = true;
    facts(host.desire("m", "pod/site", &[])).wanted_at_boot = true;
    let member = facts(host.desire("m", "container/member", &["pod/site"]));
    (member.wanted_at_boot, member.starts_with_pod) = (false, true);
    facts(host.desire("m", "container/late", &["pod/site"])).wanted_at_boot = false;
    facts(host.desire("m", "container/ticked", &[])).wanted_at_boot = false;
    host.desire("m", "container/template@", &[]);
    let timer = host.desire("m", "unit/ticked.timer", &["container/ticked"]);
    timer.body = Body::Unit { files: BTreeMap::new(), install: true };
    assert_eq!(host.status().modules[0].wanted, 3);
}

#[test]
fn only_what_is_asked_about_decides() {
    let mut host = Host::default();
    host.fine("web", "web");
    host.hold("late", "container/late", Reason::MissingSecret, "container/late", "secret key does not exist");
    let status = View::of(&host.sources(), None).only(&["web".to_owned()]).status();
    assert_eq!((status.exit_status(), status.modules.len()), (0, 1));
    assert_eq!(host.status().state(), State::Held(Reason::MissingSecret));
}

#[test]
fn status_json_has_the_fields_that_scripts_read() -> Test {
    let mut host = Host::default();
    host.fine("web", "web");
    host.hold("late", "container/late", Reason::Found, "container/late", "container late is foreign").waiting_on_take =
        true;
    let json = host.status().to_json();
    assert_eq!(json["schema"], 1);
    assert!(json["last_report"].is_null());
    assert_eq!(json["counts"]["total"], 2);
    let late = &json["modules"][0];
    assert_eq!((late["name"].as_str(), late["state"].as_str()), (Some("late"), Some("held")));
    assert_eq!(late["waiting_on_take"], true);
    assert_eq!(serde_json::to_string(&late["reasons"])?, r#"{"found":1}"#);
    Ok(())
}

#[test]
fn holds_tell_reason_cause_since_and_way_out() {
    let mut host = Host::default();
    host.observed.taken_usec = 900;
    let hold = host.hold("web", "container/web", Reason::NeedsHeld, "volume/data", "it would mount volume data");
    hold.also.insert(Reason::MissingSecret);
    host.hold("web", "volume/data", Reason::Found, "volume/data", "volume data exists").hint =
        Some("podman volume inspect data".into());
    host.hold("other", "container/x", Reason::Masked, "container/x", "x.service is masked");
    let record = HoldRecord { reason: Reason::Found, since_usec: 100 };
    let key = ResourceKey::new(Kind::Volume, "data");
    host.ledger.holds.entry("web".into()).or_default().insert(key, record);

    let all = View::of(&host.sources(), None).only(&["web".to_owned()]).holds();
    assert_eq!(
        all.text(&Dress::PLAIN).to_string(),
        "2 held in 1 module(s)   (looked at 900)\n\
         web: 2 held\n\
         \u{20} found       volume/data is held: volume data exists; not run until web is taken   (since 100)\n\
         \u{20} needs-held  container/web is held: it would mount volume data; not run until web is taken   \
         (since 900; because of volume/data; also missing-secret)\n\
         \u{20} Hint: podman volume inspect data\n"
    );
    let json = Holds::of(&host.sources()).only(Reason::NeedsHeld).to_json();
    assert_eq!(json["holds"].as_array().map(Vec::len), Some(1));
    let hold = &json["holds"][0];
    assert_eq!((hold["resource"].as_str(), hold["kind"].as_str()), (Some("container/web"), Some("container")));
    assert_eq!((hold["cause"].as_str(), hold["cause_module"].as_str()), (Some("volume/data"), Some("web")));
    assert_eq!(hold["also"][0], "missing-secret");
}

#[test]
fn a_plan_lists_changes_and_holds() {
    let mut host = Host::default();
    host.fine("web", "web");
    host.plan("web", "file//etc/web.conf", Change::Create, "it is not there");
    host.hold("web", "container/x", Reason::Masked, "container/x", "x.service is masked");
    let changes = View::of(&host.sources(), None).changes();
    let text = changes.text(&Dress::PLAIN).to_string();
    assert!(
        text.starts_with("plan: 1 to create, 0 to change, 0 to recreate, 0 to remove, 1 unchanged, 1 held\n"),
        "{text}"
    );
    assert!(text.contains("  web  create    file//etc/web.conf  it is not there\n"), "{text}");
    assert_eq!(changes.to_json()["changes"][0]["change"], "create");
}

#[test]
fn what_holds_a_whole_module_is_said_once() {
    let mut host = Host::default();
    for key in ["container/web", "volume/data"] {
        host.hold("web", key, Reason::Operator, key, "the operator holds web: audit; later");
    }
    let module = &host.status().modules[0];
    assert_eq!((module.cause.as_deref(), module.more), (Some("the operator holds web: audit; later"), 0));
    assert_eq!(module.state, State::Held(Reason::Operator));
}

/// What crosses a door says the same on the other side, whatever state a module is in.
#[test]
fn a_view_comes_back_from_json() -> Test {
    let mut host = Host::default();
    host.fine("web", "web");
    host.plan("web", "file//etc/web.conf", Change::Create, "it is not there");
    host.hold("late", "container/late", Reason::Found, "container/late", "container late is foreign").waiting_on_take =
        true;
    host.hold("down", "container/x", Reason::Masked, "container/x", "x.service is masked").also =
        BTreeSet::from([Reason::MissingSecret]);
    host.hold("odd\n", "container/y", Reason::Unreadable, "container/y", "y.container:3: no section");
    let last = LastApply { report: "ab".into(), finished_usec: 7, ..LastApply::default() };
    let view = View::of(&host.sources(), Some(&last));
    let back: View = serde_json::from_str(&serde_json::to_string(&view)?)?;
    assert_eq!(back, view);
    let texts = |view: &View| {
        let (status, holds, changes) = (view.status(), view.holds(), view.changes());
        let plain = &Dress::PLAIN;
        [status.text(plain).to_string(), holds.text(plain).to_string(), changes.text(plain).to_string()]
    };
    assert_eq!(texts(&back), texts(&view));
    Ok(())
}

/// A directory's name is anything that somebody typed: nothing of it may reach the terminal as it is.
#[test]
fn foreign_text_is_escaped() {
    let mut host = Host::default();
    host.hold("a\u{1b}[2Jb", "container/x", Reason::Unreadable, "container/x", "x.container:3: no section\nyet");
    let texts = [host.text(), Holds::of(&host.sources()).text(&Dress::PLAIN).to_string()];
    for text in texts {
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains("a\\x1b[2Jb") && text.contains("no section\\nyet"), "{text:?}");
    }
    assert_eq!(host.status().state(), State::Unreadable);
    assert!(host.text().starts_with("held: 0 of 1 resource(s) applied, 1 held"), "{}", host.text());
}

fn facts(resource: &mut Resource) -> &mut QuadletFacts {
    std::sync::Arc::make_mut(&mut resource.facts)
}
