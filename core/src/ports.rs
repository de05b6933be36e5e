//! Host ports: what a published port claims, and when two claims meet.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The transport of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// tcp, the default.
    Tcp,
    /// udp.
    Udp,
    /// sctp.
    Sctp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        })
    }
}

/// The addresses that a claim or a socket spans.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// `0.0.0.0`: every IPv4 address. A `PublishPort=` without an address is this in Podman.
    AnyV4,
    /// `[::]`, IPv6 only.
    AnyV6,
    /// `::` on a dual-stack socket: every address of both families.
    AnyBoth,
    /// One address.
    One(IpAddr),
}

/// One port of the host, held or asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortClaim {
    /// The addresses.
    pub span: Span,
    /// The port, 1 to 65535.
    pub port: u16,
    /// The transport.
    pub protocol: Protocol,
}

impl PortClaim {
    /// True when both cannot be held at once: same transport and port, and some family with an equal or any address.
    /// Checked against the kernel for tcp and udp alike.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.protocol == other.protocol && self.port == other.port && self.span.meets(&other.span)
    }
}

impl Span {
    /// The span of an address as Podman takes it: an IPv4 address in IPv6 clothes is IPv4, `::` is IPv6 only.
    #[must_use]
    pub fn of_publish(address: Option<IpAddr>) -> Self {
        match address {
            None => Self::AnyV4,
            Some(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
                v6.to_ipv4_mapped().map_or(Self::AnyV6, |v4| Self::of_publish(Some(IpAddr::V4(v4))))
            }
            Some(address) if address.is_unspecified() => {
                if address.is_ipv4() {
                    Self::AnyV4
                } else {
                    Self::AnyV6
                }
            }
            Some(address) => Self::One(address),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        let families = |span: &Self| match span {
            Self::AnyV4 => (true, false),
            Self::AnyV6 => (false, true),
            Self::AnyBoth => (true, true),
            Self::One(address) => (address.is_ipv4(), address.is_ipv6()),
        };
        let ((a4, a6), (b4, b6)) = (families(self), families(other));
        match (self, other) {
            (Self::One(a), Self::One(b)) => a == b,
            _ => (a4 && b4) || (a6 && b6),
        }
    }
}

impl fmt::Display for PortClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { span, port, protocol } = self;
        match span {
            Span::AnyV4 => write!(f, "0.0.0.0:{port}/{protocol}"),
            Span::AnyV6 | Span::AnyBoth => write!(f, "[::]:{port}/{protocol}"),
            Span::One(IpAddr::V6(v6)) => write!(f, "[{v6}]:{port}/{protocol}"),
            Span::One(v4) => write!(f, "{v4}:{port}/{protocol}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PortClaim, Protocol, Span};

    fn claim(span: Span, port: u16, protocol: Protocol) -> PortClaim {
        PortClaim { span, port, protocol }
    }

    #[test]
    fn claims_meet_as_the_kernel_says() {
        let tcp =
            |address: Option<&str>| claim(Span::of_publish(address.and_then(|a| a.parse().ok())), 80, Protocol::Tcp);
        assert!(tcp(None).meets(&tcp(Some("127.0.0.1"))));
        assert!(!tcp(Some("127.0.0.2")).meets(&tcp(Some("127.0.0.1"))));
        assert!(!tcp(None).meets(&tcp(Some("::"))));
        assert!(claim(Span::AnyBoth, 80, Protocol::Tcp).meets(&tcp(None)));
        assert!(tcp(Some("::ffff:127.0.0.1")).meets(&tcp(Some("127.0.0.1"))));
        assert!(!tcp(None).meets(&claim(Span::AnyV4, 80, Protocol::Udp)));
        assert!(!tcp(None).meets(&claim(Span::AnyV4, 81, Protocol::Tcp)));
    }
}
