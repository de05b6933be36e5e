use std::collections::BTreeMap;
use std::net::{TcpListener, UdpSocket};

use holdfast_core::observed::{Container, PortOwner};
use holdfast_core::ports::{PortClaim, Protocol, Span};

use super::{Home, Socket, Sockets, container_id, home_of, span_of};

const ID: &str = "5fd924625f6ab16a19cc9807c7c506ae1813490e4ba675f843d5a10e0baacdb8";

#[test]
fn real_sockets_are_seen() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
    let both = TcpListener::bind("[::]:0").unwrap();
    // Bound, and not listening.
    let bound = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&bound, &"127.0.0.1:0".parse::<std::net::SocketAddrV4>().unwrap()).unwrap();
    let bound_port = std::net::SocketAddr::try_from(rustix::net::getsockname(&bound).unwrap()).unwrap().port();

    let listeners = Sockets::list().unwrap().listeners(&BTreeMap::new());
    let owner = |claim: PortClaim| listeners.iter().find(|l| l.claim == claim).map(|l| l.owner.clone());
    let local = |port: u16| PortClaim { span: Span::One("127.0.0.1".parse().unwrap()), port, protocol: Protocol::Tcp };
    let seen = owner(local(tcp.local_addr().unwrap().port())).unwrap();
    if let PortOwner::Process { uid, process } = &seen {
        assert_eq!((*uid, process.as_ref().map(|(pid, _)| *pid)), (0, Some(std::process::id())));
    }
    let any = |span: Span, port: u16, protocol| PortClaim { span, port, protocol };
    assert!(owner(any(Span::AnyV4, udp.local_addr().unwrap().port(), Protocol::Udp)).is_some());
    assert!(owner(any(Span::AnyBoth, both.local_addr().unwrap().port(), Protocol::Tcp)).is_some());
    assert!(owner(local(bound_port)).is_some(), "{bound_port} in {listeners:?}");
}

#[test]
fn a_socket_knows_its_cgroup() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let sockets = Sockets::list().unwrap();
    let socket = sockets.sockets.iter().find(|socket| socket.claim.port == port).unwrap();
    assert!(socket.cgroup.is_some());
}

#[test]
fn spans_of_sockets() {
    for (address, v6_only, span) in [
        ("0.0.0.0", false, Span::AnyV4),
        ("::", false, Span::AnyBoth),
        ("::", true, Span::AnyV6),
        ("::ffff:127.0.0.1", false, Span::One("127.0.0.1".parse().unwrap())),
        ("::1", true, Span::One("::1".parse().unwrap())),
    ] {
        assert_eq!(span_of(address.parse().unwrap(), v6_only), span, "{address} {v6_only}");
    }
}

#[test]
fn homes_of_cgroups() {
    let unit = |name: &str| Home::Unit(name.to_owned());
    let user = |name: &str| Home::UserUnit(name.to_owned(), 1000);
    for (cgroup, home) in [
        ("/system.slice/x.service", unit("x.service")),
        ("/system.slice/system-a.slice/a@1.service", unit("a@1.service")),
        ("/system.slice/e6.socket", unit("e6.socket")),
        ("/system.slice/docker-5f.scope", unit("docker-5f.scope")),
        ("/init.scope", unit("init.scope")),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/uq.service", user("uq.service")),
        ("/user.slice/user-1000.slice/user@1000.service/user.slice/podman-7.scope", user("podman-7.scope")),
        ("/user.slice/user-1000.slice/user@1000.service", unit("user@1000.service")),
        ("/user.slice/user-0.slice/session-3.scope", Home::Nobody),
        ("/machine.slice", Home::Nobody),
    ] {
        assert_eq!(home_of(cgroup), home, "{cgroup}");
    }
}

#[test]
fn ids_in_cgroups() {
    for prefix in ["/system.slice/web.service/libpod-payload-", "/machine.slice/libpod-", "/system.slice/docker-"] {
        assert_eq!(container_id(&format!("{prefix}{ID}.scope/inner")), Some(ID), "{prefix}");
    }
    assert_eq!(container_id("/system.slice/abc-5fd9.service"), None);
}

#[test]
fn owners_are_named_in_order() {
    let claim = |port: u16| PortClaim { span: Span::AnyV4, port, protocol: Protocol::Tcp };
    let socket =
        |port: u16, cgroup: u64| Socket { claim: claim(port), uid: 7, inode: u32::from(port), cgroup: Some(cgroup) };
    let sockets = Sockets {
        sockets: vec![socket(80, 1), socket(81, 2), socket(82, 3), socket(83, 4), socket(84, 5), socket(80, 1)],
        cgroups: BTreeMap::from([
            (1, "/system.slice/web.service".to_owned()),
            (2, format!("/system.slice/host.service/libpod-payload-{ID}")),
            (3, format!("/system.slice/docker-{}.scope", ID.replace('5', "6"))),
            (4, "/user.slice/user-0.slice/session-1.scope".to_owned()),
        ]),
        processes: BTreeMap::from([(83, (4711, "nc".to_owned()))]),
    };
    let containers = BTreeMap::from([
        ("web".to_owned(), Container { ports: vec![claim(80)], ..Container::default() }),
        ("host".to_owned(), Container { id: ID.to_owned(), ..Container::default() }),
    ]);
    let seen: Vec<_> = sockets.listeners(&containers).into_iter().map(|l| (l.claim.port, l.owner)).collect();
    assert_eq!(
        seen,
        [
            (80, PortOwner::Container { name: "web".to_owned() }),
            (81, PortOwner::Container { name: "host".to_owned() }),
            (82, PortOwner::Unit { unit: format!("docker-{}.scope", ID.replace('5', "6")) }),
            (83, PortOwner::Process { uid: 7, process: Some((4711, "nc".to_owned())) }),
            (84, PortOwner::Process { uid: 7, process: None }),
        ]
    );
}
