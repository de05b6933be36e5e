#!/bin/bash
# Makes the test images, offline, from the static busybox. Runs once, as root,
# inside a test host; what it leaves in the image store and in the registry is
# laid into every host that boots later. A change here makes a new seed.
#
# In the registry and in local storage (so that digests agree):
#   localhost:5000/svc:1.0 1.1 2.0   HTTP on 8080: /version, /healthz; HEALTHCHECK
#   localhost:5000/svc:2.1           the same, but never healthy
#   localhost:5000/svc:nolabel       healthy, without labels
#   localhost:5000/svc:latest        = 1.0
# Only in local storage:
#   localhost/app:VERSION   keeps state: refuses /data/version newer than itself.
#                           1.22.7 is a lower version that was built last.
#   localhost/plain:1 2     no labels
#   localhost/liar:3.1.0 3.2.0  version label of the base it was made from: 24.04
#   localhost/epoch:1 2     created in 1970
#   localhost/anon:1        VOLUME /data
#   localhost/sick:1.28.0   runs, never answers; sick:health with a HEALTHCHECK
#   localhost/idle:1        waits; one small process, for hundreds of containers
# All of them stop at once on SIGTERM and run with --network none.
set -euo pipefail

registry=localhost:5000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# build IMAGE DATE [Containerfile line...]: from the layer below, plus ./add
build() {
  local image=$1 date=$2
  shift 2
  { echo "FROM ${from:-localhost/below}"; echo 'COPY add /'; printf '%s\n' "$@"; } >Containerfile
  podman build --quiet --no-cache --format docker --timestamp "$(date -ud "$date" +%s)" \
    --tag "$image" . >/dev/null
}

fresh() { rm -rf add; mkdir -p add/www; }

version_label() { echo "LABEL org.opencontainers.image.version=$1"; }

healthcheck='HEALTHCHECK --interval=1s --retries=2 CMD ["/bin/wget","-q","-O","/dev/null","http://127.0.0.1:8080/healthz"]'

# --- the layer that all share: busybox and a starter that dies when told to
fresh
mkdir -p add/bin add/etc add/tmp
chmod 1777 add/tmp
cp /bin/busybox add/bin/
for applet in cat date echo env expr head httpd id kill ls mkdir mv nc ps rm \
  sh sleep sort stat sync tail test touch true wget; do
  ln -s busybox "add/bin/$applet"
done
# PID 1 gets no signal that it does not trap: httpd or sleep there would make
# every stop last until the kill.
cat >add/bin/serve <<'E'
#!/bin/sh
# serve: HTTP from /www until SIGTERM; with `serve nothing` only wait
case ${1:-} in
  nothing) sleep 2147483647 & ;;
  *) httpd -f -p "${PORT:-8080}" -h /www & ;;
esac
child=$!
trap 'kill "$child"; exit 0' TERM INT
wait "$child"
E
cat >add/bin/app <<'E'
#!/bin/sh
# app: a service whose newer data an older version cannot read
mine=$(cat /www/version)
theirs=$(cat /data/version 2>/dev/null || echo none)
if [ "$theirs" != none ] && [ "$theirs" != "$mine" ]; then
  newest=$(printf '%s\n' "$theirs" "$mine" | sort -t. -k1,1n -k2,2n -k3,3n | tail -n 1)
  if [ "$newest" = "$theirs" ]; then
    echo "FATAL: data was written by $theirs, this is $mine: downgrade is not supported" >&2
    exit 1
  fi
fi
mkdir -p /data && echo "$mine" >/data/version || exit 1
echo "started $mine (data was: $theirs)"
exec serve "$@"
E
chmod 755 add/bin/serve add/bin/app
rmdir add/www
from=scratch build localhost/below 2025-01-01 'ENV PATH=/bin' 'EXPOSE 8080' 'CMD ["serve"]'

# --- svc
systemctl start docker-registry
for _ in {1..100}; do curl -fso /dev/null "http://$registry/v2/" && break; sleep 0.1; done

svc() { # TAG DATE HEALTHY [LABEL...]
  local tag=$1 date=$2 healthy=$3
  shift 3
  fresh
  echo "$tag" >add/www/version
  if [[ $healthy == yes ]]; then echo ok >add/www/healthz; fi
  build "$registry/svc:$tag" "$date" "$healthcheck" "$@"
  podman push --quiet "$registry/svc:$tag"
}
svc_labelled() { # TAG DATE HEALTHY
  svc "$@" "LABEL org.opencontainers.image.version=$1 org.opencontainers.image.created=${2}T00:00:00Z org.opencontainers.image.source=https://example.test/svc"
}
svc_labelled 1.0 2026-01-10 yes
svc_labelled 1.1 2026-03-01 yes
svc_labelled 2.0 2026-06-01 yes
svc_labelled 2.1 2026-07-01 no
svc nolabel 2026-02-01 yes
podman push --quiet "$registry/svc:1.0" "$registry/svc:latest"
# A push compresses, so the registry's digests differ from those just built.
tags=(1.0 1.1 2.0 2.1 nolabel)
podman rmi --force "${tags[@]/#/$registry/svc:}" >/dev/null
for tag in "${tags[@]}" latest; do podman pull --quiet "$registry/svc:$tag" >/dev/null; done

# --- app and its relatives
app() { # IMAGE VERSION DATE [Containerfile line...]
  local image=localhost/$1 version=$2 date=$3
  shift 3
  fresh
  echo "$version" >add/www/version
  echo "app $version" >add/www/index.html
  build "$image" "$date" 'CMD ["app"]' "$@"
}
while read -r version date; do
  app "app:$version" "$version" "$date" "$(version_label "$version")"
done <<'E'
1.22.6 2025-09-01
1.27.3 2025-11-01
1.27.4 2026-01-15
6.10.1 2026-02-01
6.10.3 2026-04-01
1.22.7 2026-05-01
E
app plain:1 1.0.0 2026-01-01
app plain:2 2.0.0 2026-02-01
app liar:3.1.0 3.1.0 2026-01-01 "$(version_label 24.04)"
app liar:3.2.0 3.2.0 2026-02-01 "$(version_label 24.04)"
app epoch:1 1.0.0 @0
app epoch:2 2.0.0 @0
app anon:1 1.0.0 2026-01-01 'VOLUME /data'
app sick:1.28.0 1.28.0 2026-03-01 "$(version_label 1.28.0)" 'CMD ["app","nothing"]'
app sick:health 1.28.0 2026-03-01 "$(version_label 1.28.0)" 'CMD ["app","nothing"]' "$healthcheck"

# --- idle: what Podman runs in a pod's infra container
fresh
rmdir add/www
cp "$(readlink -f /usr/bin/catatonit)" add/catatonit
build localhost/idle:1 2026-01-01 'ENTRYPOINT ["/catatonit","-P"]' 'CMD []'

podman untag localhost/below
podman images --format '{{.Repository}}:{{.Tag}}' | sort >&2
