//! systemd's side of the look: which units are loaded, where they come from, and which unit a cgroup belongs to.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::observed::Unit;
use zbus::proxy::CacheProperties;
use zbus_systemd::systemd1::{ManagerProxy, ServiceProxy, UnitProxy};

use super::{DEADLINE, ObserveError, late};

/// The system's manager on the bus.
#[derive(Debug, Clone)]
pub struct Manager {
    connection: zbus::Connection,
    proxy: ManagerProxy<'static>,
    unit_path: Vec<String>,
}

/// What is asked of few units only: each costs some round trips.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitDetails {
    /// The unit file, for a generated unit below /run/systemd/generator.
    pub fragment_path: Option<String>,
    /// The file that the generator made it from.
    pub source_path: Option<String>,
    /// Its drop-ins.
    pub drop_in_paths: Vec<String>,
    /// All its names.
    pub names: Vec<String>,
    /// The words of each `ExecStart=`, specifiers expanded, `${VAR}` not.
    pub exec_start: Vec<Vec<String>>,
}

impl Manager {
    /// Connects to the system bus and asks systemd for its unit path, which does not change while it runs.
    ///
    /// # Errors
    /// [`ObserveError::Systemd`] when the bus or systemd does not answer.
    pub async fn connect() -> Result<Self, ObserveError> {
        let connect = async {
            let connection = zbus::Connection::system().await?;
            let proxy = ManagerProxy::builder(&connection).cache_properties(CacheProperties::No).build().await?;
            let unit_path = proxy.unit_path().await?;
            Ok(Self { connection, proxy, unit_path })
        };
        in_time("the connection to systemd", connect).await
    }

    /// The directories of unit files, strongest first.
    #[must_use]
    pub fn unit_path(&self) -> &[String] {
        &self.unit_path
    }

    /// Those of some units that are loaded, in one call. Absent ones are not loaded for it: that costs milliseconds each.
    ///
    /// # Errors
    /// [`ObserveError::Systemd`] when systemd does not answer.
    pub async fn units(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Unit>, ObserveError> {
        if names.is_empty() {
            // No pattern would mean every unit.
            return Ok(BTreeMap::new());
        }
        let patterns = names.iter().cloned().collect();
        let listed = in_time("the list of units", self.proxy.list_units_by_patterns(Vec::new(), patterns)).await?;
        let units = listed.into_iter().map(|(name, _, load_state, active_state, sub_state, ..)| {
            (name, Unit { load_state, active_state, sub_state, fragment_path: None, source_path: None })
        });
        Ok(units.filter(|(name, _)| names.contains(name)).collect())
    }

    /// The active units of which a pattern is.
    ///
    /// # Errors
    /// [`ObserveError::Systemd`] when systemd does not answer.
    pub async fn active_like(&self, pattern: &str) -> Result<BTreeSet<String>, ObserveError> {
        let (states, patterns) = (vec!["active".to_owned()], vec![pattern.to_owned()]);
        let listed = in_time("the list of units", self.proxy.list_units_by_patterns(states, patterns)).await?;
        Ok(listed.into_iter().map(|(name, ..)| name).collect())
    }

    /// More of a few units; those that are not loaded are left out.
    ///
    /// # Errors
    /// [`ObserveError::Systemd`] when systemd does not answer.
    pub async fn unit_details(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, UnitDetails>, ObserveError> {
        let mut details = BTreeMap::new();
        for name in names {
            if let Some(found) = in_time("a unit", self.details_of(name)).await? {
                details.insert(name.clone(), found);
            }
        }
        Ok(details)
    }

    async fn details_of(&self, name: &str) -> zbus::Result<Option<UnitDetails>> {
        let path = match self.proxy.get_unit(name.to_owned()).await {
            Ok(path) => path,
            Err(zbus::Error::MethodError(error, ..)) if error.as_str() == "org.freedesktop.systemd1.NoSuchUnit" => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let unit = UnitProxy::builder(&self.connection)
            .path(path.clone())
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        let exec_start = if name.ends_with(".service") {
            let service = ServiceProxy::builder(&self.connection)
                .path(path)
                .cache_properties(CacheProperties::No)
                .build()
                .await?;
            service.exec_start().await?.into_iter().map(|(_, words, ..)| words).collect()
        } else {
            Vec::new()
        };
        let named = |path: String| Some(path).filter(|path| !path.is_empty());
        Ok(Some(UnitDetails {
            fragment_path: named(unit.fragment_path().await?),
            source_path: named(unit.source_path().await?),
            drop_in_paths: unit.drop_in_paths().await?,
            names: unit.names().await?,
            exec_start,
        }))
    }
}

async fn in_time<T>(what: &'static str, answer: impl Future<Output = zbus::Result<T>>) -> Result<T, ObserveError> {
    match tokio::time::timeout(DEADLINE, answer).await {
        Ok(answer) => answer.map_err(|error| ObserveError::Systemd(Box::new(error))),
        Err(_) => Err(late(what)),
    }
}

/// The cgroup of a process's parent: for a container's first process that is its conmon.
#[must_use]
pub fn cgroup_of_parent(pid: i64) -> Option<String> {
    if pid <= 0 {
        return None;
    }
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let parent = parent_in_stat(&String::from_utf8_lossy(&stat))?;
    let cgroup = std::fs::read(format!("/proc/{parent}/cgroup")).ok()?;
    systemd_cgroup(&String::from_utf8_lossy(&cgroup))
}

/// The unit in whose cgroup a conmon is; none for one that Podman has put into a scope of its own.
#[must_use]
pub fn unit_of_conmon(cgroup: &str) -> Option<String> {
    cgroup.split('/').find(|part| part.ends_with(".service")).map(str::to_owned)
}

/// The fourth field. The second is a name in brackets that may hold anything, brackets too.
fn parent_in_stat(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// The path in systemd's hierarchy: the unified one, or the one named after it on hosts that still have both.
fn systemd_cgroup(text: &str) -> Option<String> {
    let path_of = |controllers: &str| {
        let mut fields = text.lines().map(|line| line.splitn(3, ':'));
        fields.find_map(|mut field| {
            let (_, found, path) = (field.next()?, field.next()?, field.next()?);
            (found == controllers).then(|| path.to_owned())
        })
    };
    // A host that has both keeps every process at the root of the one it does not use.
    let unified = path_of("");
    unified.clone().filter(|path| path != "/").or_else(|| path_of("name=systemd")).or(unified)
}

#[cfg(test)]
mod tests {
    use super::{cgroup_of_parent, parent_in_stat, systemd_cgroup, unit_of_conmon};

    #[test]
    fn parents_are_found_behind_any_name() {
        for (stat, parent) in [
            ("812 (sleep) S 640 812 812 0 -1", Some(640)),
            ("812 (a) S 1 (x) R) S 77 812", Some(77)),
            ("812 (sleep", None),
            ("", None),
        ] {
            assert_eq!(parent_in_stat(stat), parent, "{stat}");
        }
        assert_eq!(cgroup_of_parent(0), None);
        assert_eq!(cgroup_of_parent(-1), None);
    }

    #[test]
    fn cgroups_of_both_kinds_of_host() {
        for (text, path) in [
            ("0::/system.slice/web.service\n", Some("/system.slice/web.service")),
            ("12:cpu:/x\n1:name=systemd:/system.slice/a.service\n0::/\n", Some("/system.slice/a.service")),
            ("0::/odd:name/x.service\n", Some("/odd:name/x.service")),
            ("0::/\n", Some("/")),
            ("", None),
        ] {
            assert_eq!(systemd_cgroup(text).as_deref(), path, "{text}");
        }
    }

    #[test]
    fn units_of_conmons() {
        for (cgroup, unit) in [
            ("/system.slice/web.service", Some("web.service")),
            ("/system.slice/web.service/runtime", Some("web.service")),
            ("/system.slice/system-w.slice/w@1.service/supervisor", Some("w@1.service")),
            ("/custom.slice/web.service", Some("web.service")),
            ("/machine.slice/libpod-conmon-5f.scope", None),
            ("/user.slice/user-0.slice/session-3.scope", None),
        ] {
            assert_eq!(unit_of_conmon(cgroup).as_deref(), unit, "{cgroup}");
        }
    }
}
