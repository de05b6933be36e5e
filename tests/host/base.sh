# The root file system that all test hosts share: what is in it, and how it
# differs from a stock Debian. Sourced by `host`; a change here makes a new root.

SUITE=${HOLDFAST_TEST_SUITE:-trixie}

PACKAGES=(
  # the system under test's world
  systemd systemd-sysv dbus dbus-user-session libpam-systemd polkitd
  podman crun netavark aardvark-dns nftables passt uidmap catatonit
  # reaching it, and shipping its journal
  openssh-server systemd-journal-remote ca-certificates sudo
  # making and moving images
  busybox-static docker-registry skopeo
  # tools for the tests
  python3-minimal procps iproute2 curl jq strace libfaketime
)

# Units that are slow, noisy or impossible in a container on a shared kernel.
MASKED=(
  systemd-modules-load.service modprobe@.service systemd-pstore.service
  getty@.service console-getty.service
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer
  fstrim.timer e2scrub_all.timer
  dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount
)

# make_root DIR: install the packages into the new directory DIR.
make_root() {
  local include
  include=$(IFS=,; echo "${PACKAGES[*]}")
  # Suites other than stable carry a Valid-Until that may be past by this clock.
  mmdebstrap --quiet --variant=minbase --include="$include" \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Check-Valid-Until "false"' \
    --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$SUITE" "$1" >&2
}

# put MODE FILE: standard input becomes FILE below $root.
put() {
  mkdir -p "$root/${2%/*}"
  cat >"$root/$2"
  chmod "$1" "$root/$2"
}

# tune_root DIR: turn the fresh Debian into a test host.
tune_root() {
  local root=$1 units=$1/etc/systemd/system unit

  for unit in "${MASKED[@]}"; do ln -sfn /dev/null "$units/$unit"; done
  # Installed for the tests' use; started only by those that want them.
  rm -f "$units"/*.wants/{docker-registry.service,podman-auto-update.timer}
  rm -f "$units"/*.wants/netavark-dhcp-proxy.*
  # A user's Quadlets wait for this target, and nothing else pulls it in.
  mkdir -p "$units/multi-user.target.wants"
  ln -sfn /usr/lib/systemd/system/network-online.target \
    "$units/multi-user.target.wants/"

  put 644 etc/systemd/journald.conf.d/10-tests.conf <<'E'
[Journal]
Storage=persistent
SystemMaxUse=128M
E
  mkdir -p "$root/var/log/journal"
  : >"$root/etc/machine-id"                  # each host gets its own

  # Rootless networking opens /dev/net/tun as the user.
  put 644 etc/tmpfiles.d/90-tests.conf <<'E'
z /dev/net/tun 0666
z /dev/fuse 0666
E

  # The hosts have no cgroup controllers: Podman's default pids limit would
  # fail. Containers with limits of their own can run with this runtime.
  put 644 etc/containers/containers.conf.d/10-tests.conf <<'E'
[containers]
pids_limit = 0
[engine.runtimes]
crun-nolimits = ["/usr/local/bin/crun-nolimits"]
E
  put 755 usr/local/bin/crun-nolimits <<'E'
#!/bin/bash
# crun for a machine without cgroup controllers: `create` gets a copy of the
# bundle's config without resource limits. Podman keeps showing the real ones.
bundle='' create=''
for ((i = 1; i <= $#; i++)); do
  case ${!i} in
    create) create=$i ;;
    --bundle | -b) j=$((i + 1)) bundle=${!j} ;;
  esac
done
if [[ $create && -f $bundle/config.json ]]; then
  jq 'del(.linux.resources["memory", "cpu", "pids", "blockIO"])
      | if (.process.oomScoreAdj // 0) < 0 then del(.process.oomScoreAdj) else . end' \
    "$bundle/config.json" >"$bundle/config.nolimits.json" || exit 1
  set -- "${@:1:create}" --config="$bundle/config.nolimits.json" "${@:create+1}"
fi
exec /usr/bin/crun "$@"
E

  # A registry on loopback, without Debian's password.
  put 644 etc/docker/registry/config.yml <<'E'
version: 0.1
storage: {filesystem: {rootdirectory: /var/lib/docker-registry}, delete: {enabled: true}}
http: {addr: "127.0.0.1:5000"}
E
  put 644 etc/containers/registries.conf.d/90-tests.conf <<'E'
[[registry]]
location = "localhost:5000"
insecure = true
E

  # One pair of keys for all hosts (made anew for each root, never committed):
  # every host trusts every other, and first boot has no keys to make.
  chroot "$root" /bin/sh -eu <<'E'
rm -f /etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -C host -f /etc/ssh/ssh_host_ed25519_key
install -d -m 700 /root/.ssh
ssh-keygen -q -t ed25519 -N '' -C tests -f /root/.ssh/id_ed25519
cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys
sed 's/^/* /' /etc/ssh/ssh_host_ed25519_key.pub >/etc/ssh/ssh_known_hosts
# a person with sudo rights and rootless containers
useradd --create-home --shell /bin/bash --groups sudo op
echo op:holdfast | chpasswd
install -d -o op -g op -m 700 /home/op/.ssh
install -o op -g op -m 600 /root/.ssh/authorized_keys /home/op/.ssh/
install -d /var/lib/systemd/linger
touch /var/lib/systemd/linger/op
E
}
