//! Which sockets hold a port, and whose they are: the kernel's own list, with the cgroup that each was made in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

use holdfast_core::observed::{Container, Listener, PortOwner};
use holdfast_core::ports::{PortClaim, Protocol, Span};
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla as _};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_packet_sock_diag::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP, SockDiagMessage};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use super::ObserveError;
use super::mounts::MountTable;

/// Sockets that are bound and do not listen yet: no other list has them, and a port that they hold is taken.
const TCP_BOUND_INACTIVE: u32 = 13;
/// The cgroup in which a socket was made.
const INET_DIAG_CGROUP_ID: u16 = 21;

/// The sockets of the host's network, and what is needed to tell whose they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sockets {
    sockets: Vec<Socket>,
    /// Cgroup paths by cgroup ID.
    cgroups: BTreeMap<u64, String>,
    /// PID and command name by socket inode, for sockets that no cgroup names an owner of.
    processes: BTreeMap<u32, (u32, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Socket {
    claim: PortClaim,
    uid: u32,
    inode: u32,
    cgroup: Option<u64>,
}

/// What a cgroup path says about an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Home {
    Unit(String),
    UserUnit(String, u32),
    /// A login session, or a cgroup that is no more.
    Nobody,
}

impl Sockets {
    /// Lists tcp sockets that listen or are bound, and all udp sockets.
    ///
    /// # Errors
    /// [`ObserveError`] when the kernel does not give its list.
    pub fn list() -> Result<Self, ObserveError> {
        let socket = connect()?;
        let mut sockets = Vec::new();
        for (family, protocol) in
            [(AF_INET, IPPROTO_TCP), (AF_INET6, IPPROTO_TCP), (AF_INET, IPPROTO_UDP), (AF_INET6, IPPROTO_UDP)]
        {
            dump(&socket, family, protocol, &mut sockets)?;
        }
        let cgroups = MountTable::read()?.first_of_type("cgroup2").map(cgroups_below).unwrap_or_default();
        let mut list = Self { sockets, cgroups, processes: BTreeMap::new() };
        let unnamed: BTreeSet<u32> =
            list.sockets.iter().filter(|socket| list.home(socket) == Home::Nobody).map(|socket| socket.inode).collect();
        list.processes = processes_of(&unnamed);
        Ok(list)
    }

    /// Each socket's port with its owner. A running container that claims the port comes first: its sockets are held by
    /// its conmon, in the cgroup of whoever started it.
    #[must_use]
    pub fn listeners(&self, containers: &BTreeMap<String, Container>) -> Vec<Listener> {
        let listener =
            |socket: &Socket| Listener { claim: socket.claim.clone(), owner: self.owner(socket, containers) };
        let mut listeners: Vec<Listener> = self.sockets.iter().map(listener).collect();
        listeners.sort_by(|a, b| a.claim.cmp(&b.claim));
        listeners.dedup();
        listeners
    }

    fn owner(&self, socket: &Socket, containers: &BTreeMap<String, Container>) -> PortOwner {
        let claims = |container: &Container| container.ports.iter().any(|claim| claim.meets(&socket.claim));
        let inside =
            |container: &Container| self.cgroup(socket).and_then(container_id).is_some_and(|id| container.id == id);
        let found = containers.iter().find(|(_, container)| claims(container));
        if let Some((name, _)) = found.or_else(|| containers.iter().find(|(_, container)| inside(container))) {
            return PortOwner::Container { name: name.clone() };
        }
        match self.home(socket) {
            Home::Unit(unit) => PortOwner::Unit { unit },
            Home::UserUnit(unit, uid) => PortOwner::UserUnit { unit, uid },
            Home::Nobody => PortOwner::Process { uid: socket.uid, process: self.processes.get(&socket.inode).cloned() },
        }
    }

    fn cgroup(&self, socket: &Socket) -> Option<&str> {
        self.cgroups.get(&socket.cgroup?).map(String::as_str)
    }

    fn home(&self, socket: &Socket) -> Home {
        self.cgroup(socket).map_or(Home::Nobody, home_of)
    }
}

/// The last unit in a cgroup path. A login session is a scope too, and stopping it would end somebody's session: what
/// runs there is told as a process.
fn home_of(cgroup: &str) -> Home {
    let is_unit = |part: &&str| [".service", ".socket", ".scope"].iter().any(|suffix| part.ends_with(suffix));
    let Some(unit) = cgroup.split('/').rfind(is_unit) else { return Home::Nobody };
    if unit.starts_with("session-") && unit.ends_with(".scope") {
        return Home::Nobody;
    }
    let uid_of = |part: &str| part.strip_prefix("user@")?.strip_suffix(".service")?.parse().ok();
    match cgroup.split('/').find_map(uid_of) {
        Some(uid) if uid_of(unit).is_none() => Home::UserUnit(unit.to_owned(), uid),
        _ => Home::Unit(unit.to_owned()),
    }
}

/// The container whose own cgroup a path leads into: `libpod-ID.scope`, `libpod-payload-ID`, `docker-ID.scope`.
fn container_id(cgroup: &str) -> Option<&str> {
    let is_id = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    cgroup.split(['/', '-', '.']).find(is_id)
}

/// Cgroup paths by inode, which is the cgroup's ID.
fn cgroups_below(mount: &str) -> BTreeMap<u64, String> {
    let mut cgroups = BTreeMap::new();
    let mut waiting = vec![String::new()];
    while let Some(parent) = waiting.pop() {
        // A cgroup may vanish while it is walked.
        for entry in std::fs::read_dir(format!("{mount}{parent}")).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let path = format!("{parent}/{}", entry.file_name().to_string_lossy());
                cgroups.insert(entry.ino(), path.clone());
                waiting.push(path);
            }
        }
    }
    cgroups
}

/// Who has sockets open, by inode; only what this process may look at.
fn processes_of(inodes: &BTreeSet<u32>) -> BTreeMap<u32, (u32, String)> {
    let mut found = BTreeMap::new();
    if inodes.is_empty() {
        return found;
    }
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        for descriptor in std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let Some(inode) = socket_inode(&descriptor.path()).filter(|inode| inodes.contains(inode)) else { continue };
            let name = std::fs::read(process.path().join("comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(&name).trim_end().to_owned();
            found.entry(inode).or_insert((pid, name));
        }
    }
    found
}

fn socket_inode(descriptor: &Path) -> Option<u32> {
    let target = std::fs::read_link(descriptor).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn connect() -> Result<OwnedFd, ObserveError> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG)).map_err(failed)
}

/// Asks for the sockets of one family and transport. A kernel without that transport has none.
fn dump(socket: &OwnedFd, family: u8, protocol: u8, sockets: &mut Vec<Socket>) -> Result<(), ObserveError> {
    let states = if protocol == IPPROTO_TCP {
        StateFlags::LISTEN | StateFlags::from_bits_retain(1 << TCP_BOUND_INACTIVE)
    } else {
        StateFlags::from_bits_retain(u32::MAX)
    };
    let socket_id = if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() };
    let request = InetRequest { family, protocol, extensions: ExtensionFlags::empty(), states, socket_id };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    rustix::net::send(socket, &bytes, SendFlags::empty()).map_err(failed)?;
    let protocol = if protocol == IPPROTO_TCP { Protocol::Tcp } else { Protocol::Udp };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()).map_err(failed)?;
        if read_dump(&buffer[..length], protocol, sockets)? {
            return Ok(());
        }
    }
}

/// Reads one datagram of a dump; true when it was the last.
fn read_dump(mut bytes: &[u8], protocol: Protocol, sockets: &mut Vec<Socket>) -> Result<bool, ObserveError> {
    while !bytes.is_empty() {
        let message: NetlinkMessage<SockDiagMessage> = NetlinkMessage::deserialize(bytes).map_err(failed)?;
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                sockets.extend(Socket::read(&response, protocol));
            }
            // ENOENT: this kernel has no such transport, so nobody holds a port of it.
            NetlinkPayload::Error(error) if error.to_io().kind() == std::io::ErrorKind::NotFound => return Ok(true),
            NetlinkPayload::Error(error) => return Err(failed(error.to_io())),
            _ => {}
        }
        let length = usize::try_from(message.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
        bytes = bytes.get(length.max(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ObserveError {
    ObserveError::Sockets(error.into())
}

impl Socket {
    fn read(response: &InetResponse, protocol: Protocol) -> Option<Self> {
        let header = &response.header;
        let v6_only = response.nlas.iter().any(|nla| matches!(nla, Nla::SkV6Only(true)));
        let cgroup = response.nlas.iter().find_map(|nla| match nla {
            Nla::Other(other) if other.kind() == INET_DIAG_CGROUP_ID => {
                let mut id = [0; 8];
                (other.value_len() == id.len()).then(|| other.emit_value(&mut id))?;
                Some(u64::from_ne_bytes(id))
            }
            _ => None,
        });
        let span = span_of(header.socket_id.source_address, v6_only);
        let claim = PortClaim { span, port: header.socket_id.source_port, protocol };
        // A udp socket that was never bound has no port.
        (claim.port != 0).then_some(Self { claim, uid: header.uid, inode: header.inode, cgroup })
    }
}

fn span_of(address: IpAddr, v6_only: bool) -> Span {
    match Span::of_publish(Some(address)) {
        Span::AnyV6 if !v6_only => Span::AnyBoth,
        span => span,
    }
}

#[cfg(test)]
mod tests;
