# The first process of a confined program's namespaces: sh confinement.sh DATA PROGRAMS COMMAND... (confinement.py).
# DATA becomes /tmp/data and PROGRAMS /tmp/engine. Both are opened before /tmp is hidden, as they may stand in it; mount(8) must
# not look up where the links to them lead, which is nowhere by then.
set -e
exec 3<"$1" 4<"$2"
shift 2
mount -t tmpfs -o size=256m,mode=1777 tmpfs /tmp
mkdir /tmp/data /tmp/engine
mount --no-canonicalize --bind /proc/self/fd/3 /tmp/data
mount --no-canonicalize --bind /proc/self/fd/4 /tmp/engine
exec 3<&- 4<&-
for place in /var/tmp /dev/shm; do
    [ ! -d "$place" ] || mount -t tmpfs -o size=256m,mode=1777 tmpfs "$place"
done
cd /tmp/data
set +e
"$@"
# Not the last command by itself: a shell would become it, and the first process of a namespace ignores SIGTERM.
exit $?
