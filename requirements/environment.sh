# Finds or makes a virtual environment from a locked requirements file. Sourced by `bedplate` and
# `check`, never run. POSIX sh; `local` is avoided, so every variable is prefixed or plainly named.
#
# An environment is a directory of the cache, environments/NAME-PYTHON-KEY, made once and then only
# read. It counts only when its file `complete` exists, which is written last: line 1 is the
# interpreter it stands on. Beside it lies a copy of the requirements that it was made from; a start
# compares the texts, which costs two short processes where hashing costs a Python.
# Why it is done this way: docs/decisions/0003-launcher-and-environment.md

exit_requirement_missing=3

# $1: the interpreter to examine; $2: the requirements file. Prints one line: state, version,
# interpreter, key. `_base_executable` leads out of another virtual environment and realpath out of
# a version manager's shim or a distribution's changing `python3` link, so that the environment
# breaks visibly (a dangling link) when its Python goes, instead of meeting another version.
probe_program='
import sys
version = "%d.%d.%d" % sys.version_info[:3]
executable = getattr(sys, "_base_executable", sys.executable)
if sys.version_info < (3, 11):
    print("old %s - %s" % (version, executable))
    sys.exit()
import hashlib, os, platform
executable = os.path.realpath(executable)
try:
    import ensurepip, venv
    state = "usable"
except ImportError:
    state = "no-venv"
with open(sys.argv[1], "rb") as file:
    digest = hashlib.sha256(file.read())
digest.update(("%s %s %s" % (executable, version, platform.machine())).encode())
tag = sys.implementation.cache_tag
print("%s %s %s-%s %s" % (state, version, tag, digest.hexdigest()[:16], executable))
'

say() {
    printf '%s\n' "$program: $*" >&2
}

# Sets `environments`: where bedplate.host.files says the cache is, one directory deeper.
locate_environments() {
    if [ -n "${BEDPLATE_CACHE-}" ]; then
        case $BEDPLATE_CACHE in
            /*) environments=$BEDPLATE_CACHE/environments ;;
            *) environments=$PWD/$BEDPLATE_CACHE/environments ;;
        esac
    elif [ "$(id -u)" = 0 ]; then
        environments=/var/cache/bedplate/environments
    else
        case ${XDG_CACHE_HOME-} in
            /*) environments=$XDG_CACHE_HOME/bedplate/environments ;;
            *)
                # A job of Slurm 24 has no HOME. The file of users has it.
                home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
                environments=${home:?is not known: set HOME, or BEDPLATE_CACHE}/.cache/bedplate/environments
                ;;
        esac
    fi
}

# Succeeds if two files have the same text. Not by cmp: a bare Fedora has none.
is_same() {
    [ -r "$1" ] && [ "$(cat "$1")" = "$(cat "$2")" ]
}

# Sets `environment` to a complete environment of exactly these requirements; fails if there is none.
# $1: name (runtime, development); $2: requirements file.
find_environment() {
    for environment in "$environments/$1"-*; do
        [ -f "$environment/complete" ] && [ -x "$environment/bin/python" ] || continue
        if [ -n "${BEDPLATE_PYTHON-}" ]; then
            [ "$BEDPLATE_PYTHON" -ef "$environment/bin/python" ] || continue
        fi
        is_same "$environment/requirements.txt" "$2" && return 0
    done
    environment=
    return 1
}

# Notes in `environment` that this requirements file stands on it, for `bedplate release --cache`. Every
# start comes here, so it takes no process. $1: requirements file.
note_use() {
    case $1 in
        /*) noted=$1 ;;
        *) noted=$PWD/$1 ;;
    esac
    if [ -r "$environment/used-by" ]; then
        while IFS= read -r noted_before; do
            [ "$noted_before" = "$noted" ] && return 0
        done <"$environment/used-by"
    fi
    # Another user's environment cannot be written, and is not ours to remove either.
    [ ! -w "$environment" ] || printf '%s\n' "$noted" >>"$environment/used-by" || return 0
}

# Looks at one interpreter. Sets `python`, `python_version`, `python_key` and succeeds if it will do;
# else remembers why not in `reasons` and, if only venv is missing, in `without_venv`.
examine() {
    command -v "$1" >/dev/null 2>&1 || return 1
    # A shim of a version that is not chosen exits with an error, and is no Python to speak of.
    found=$("$1" -I -S -c "$probe_program" "$2" 2>/dev/null) || return 1
    state=${found%% *} found=${found#* }
    python_version=${found%% *} found=${found#* }
    python_key=${found%% *} python=${found#* }
    # Many names lead to the same Python; each is explained once.
    case $looked_at in
        *"|$python|"*) return 1 ;;
    esac
    looked_at="$looked_at|$python|"
    case $state in
        usable) return 0 ;;
        old) reasons="$reasons  $1 is Python $python_version; 3.11 or newer is needed
" ;;
        no-venv)
            reasons="$reasons  $1 is Python $python_version without its venv and ensurepip modules
"
            [ -n "$without_venv" ] || without_venv=$python
            ;;
        *) ;; # Not our one line: whatever this is, it is not a Python to stand on.
    esac
    return 1
}

# Sets `python` and its kin to the first usable interpreter. $1: requirements file.
# With BEDPLATE_PYTHON nothing else is tried: an override that is quietly ignored is none.
find_python() {
    reasons= without_venv= looked_at=
    if [ -n "${BEDPLATE_PYTHON-}" ]; then
        examine "$BEDPLATE_PYTHON" "$1" && return 0
        [ -n "$reasons" ] || reasons="  BEDPLATE_PYTHON=$BEDPLATE_PYTHON is not a Python that starts
"
        return 1
    fi
    for candidate in python3 python3.13 python3.12 python3.11 python3.14 /usr/bin/python3 \
        /usr/local/bin/python3 "${HOME-}"/.pyenv/versions/*/bin/python3 \
        "${HOME-}"/.local/share/uv/python/*/bin/python3 \
        "${HOME-}"/.local/share/mise/installs/python/*/bin/python3 \
        "${HOME-}"/.asdf/installs/python/*/bin/python3; do
        examine "$candidate" "$1" && return 0
    done
    [ -n "$reasons" ] || reasons="  no python3 was found
"
    return 1
}

# Succeeds if `--yes` is among the arguments of the call, before any `--`.
said_yes() {
    for argument in "$@"; do
        case $argument in
            --yes) return 0 ;;
            --) return 1 ;;
        esac
    done
    return 1
}

# Asks for consent to install. $@: the arguments of the call.
may_install() {
    said_yes "$@" && return 0
    [ -t 0 ] && [ -t 2 ] || return 1
    printf 'Install now? [y/N] ' >&2
    read -r answer || return 1
    case $answer in
        y | Y | yes | Yes) return 0 ;;
    esac
    return 1
}

# Sets `installer` to the package tool that is understood here, or to nothing.
choose_installer() {
    installer=
    for candidate in apt-get dnf; do
        if command -v "$candidate" >/dev/null 2>&1; then
            installer=$candidate
            return
        fi
    done
}

# Installs packages with the distribution's tool, without asking. $@: packages.
# On a terminal the tool's progress is for whoever waits. Elsewhere its hundreds of lines go to a log.
install_packages() {
    package_log=
    if ! [ -t 2 ] && mkdir -p "${environments%/*}" && printf '' >"${environments%/*}/packages.log"; then
        package_log=${environments%/*}/packages.log
        say "installing $*; what the package tool says goes to $package_log"
    fi
    case $installer in
        apt-get)
            run_installer apt-get update || say "apt-get update failed; trying with the package lists at hand"
            run_installer env DEBIAN_FRONTEND=noninteractive \
                apt-get install --yes --no-install-recommends "$@"
            ;;
        dnf) run_installer dnf install --assumeyes "$@" ;;
        *) return 1 ;;
    esac
}

# Runs a package tool, into `package_log` if that is set; the last lines of a failure are shown anyway.
run_installer() {
    if [ -z "$package_log" ]; then
        "$@" </dev/null >&2
        return
    fi
    "$@" </dev/null >>"$package_log" 2>&1 && return
    installer_status=$?
    say "the end of $package_log:"
    tail -n 20 "$package_log" >&2
    return "$installer_status"
}

# Sets `packages` to what gives this distribution a usable Python.
name_python_packages() {
    case $installer in
        apt-get)
            packages='python3 python3-venv'
            if [ -n "$without_venv" ]; then
                [ /usr/bin/python3 -ef "$without_venv" ] || packages=${without_venv##*/}-venv
            elif [ -x /usr/bin/python3 ]; then
                # The release's own python3 is too old (Ubuntu 22.04); it may offer a newer one beside it.
                packages=
                for candidate in python3.13 python3.12 python3.11; do
                    apt-cache show "$candidate" >/dev/null 2>&1 || continue
                    packages="$candidate $candidate-venv"
                    break
                done
            fi
            ;;
        *) packages=python3 ;;
    esac
}

# Explains what is missing, installs it if it may, and sets `python`; exits 3 otherwise.
# $1: requirements file; the rest: the arguments of the call.
provide_python() {
    requirements_file=$1
    shift
    say 'Python 3.11 or newer with its venv module is needed. Looked at:'
    printf '%s' "$reasons" >&2
    if [ -n "${BEDPLATE_PYTHON-}" ]; then
        say 'unset BEDPLATE_PYTHON, or set it to the path of such a Python'
        exit "$exit_requirement_missing"
    fi
    # To ask a package tool takes seconds.
    choose_installer
    name_python_packages
    if [ -z "$packages" ] || [ -z "$installer" ]; then
        say 'install one (uv and pyenv can do it too), or set BEDPLATE_PYTHON to the path of one'
        exit "$exit_requirement_missing"
    fi
    privilege=
    [ "$(id -u)" = 0 ] || privilege='sudo '
    case $installer in
        apt-get) say "this installs it:  ${privilege}apt-get update && ${privilege}apt-get install --yes --no-install-recommends $packages" ;;
        dnf) say "this installs it:  ${privilege}dnf install --assumeyes $packages" ;;
    esac
    if [ -n "$privilege" ] || ! may_install "$@"; then
        # Not every command of bedplate takes it.
        [ "$program" = bedplate ] && takes_yes=' to setup, quickstart, ask or run' || takes_yes=
        [ -n "$privilege" ] || say "or let bedplate do it: give --yes$takes_yes"
        exit "$exit_requirement_missing"
    fi
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages || {
        say "installing $packages failed; the messages are above"
        exit "$exit_requirement_missing"
    }
    find_python "$requirements_file" && return 0
    say 'the installed packages bring no Python that will do. Looked at:'
    printf '%s' "$reasons" >&2
    say 'set BEDPLATE_PYTHON to a Python 3.11 or newer with venv, for example one from uv or pyenv'
    exit "$exit_requirement_missing"
}

# Fills `environment` from nothing. Runs in a subshell that holds the lock. $1: requirements file.
fill_environment() {
    umask 022
    rm -rf "$environment"
    "$python" -I -m venv "$environment" >&2 || {
        say "$python could not make a virtual environment in $environment; the reason is above"
        return 1
    }
    # A copy first: if the file changes while pip reads it, the copy differs and the next start sees it.
    cp "$1" "$environment/requirements.txt" || return 1
    "$environment/bin/python" -I -m pip install --quiet --disable-pip-version-check --no-input \
        --require-hashes --no-deps --only-binary :all: \
        --requirement "$environment/requirements.txt" >&2 || {
        say "pip could not install what ${1##*/} lists; its reason is above. Ways out:"
        say '  - a network: pip needs its package index, or the mirror that pip is configured for'
        say '  - no network here: on a machine that has one, with the same version of Python, run'
        say "      python3 -m pip download --require-hashes --no-deps --only-binary :all: -d wheels -r $1"
        say '    then bring the folder here and start with PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels'
        say "  - no space: BEDPLATE_CACHE names another directory than ${environments%/*} (about 500 MB)"
        return 1
    }
    printf '%s\n' "$python" >"$environment/complete.part" &&
        mv "$environment/complete.part" "$environment/complete"
}

# Sets `environment`, making it on first use. Exits 3 with the way out if that cannot be done.
# $1: name; $2: requirements file; the rest: the arguments of the call.
require_environment() {
    if find_environment "$1" "$2"; then
        note_use "$2"
        return 0
    fi
    name=$1 requirements_file=$2
    shift 2
    find_python "$requirements_file" || provide_python "$requirements_file" "$@"
    environment=$environments/$name-$python_key
    if ! mkdir -p "$environments" || ! [ -w "$environments" ]; then
        say "cannot write to $environments; set BEDPLATE_CACHE to a directory that can be written"
        exit "$exit_requirement_missing"
    fi
    # The lock goes with its holder, whatever ends it; an environment left half made has no file
    # `complete` and is made anew. The subshell keeps the lock's descriptor from the program itself.
    (
        if ! flock -n 9; then
            say 'another start is making the environment; waiting for it'
            flock 9
        fi
        [ -f "$environment/complete" ] && [ -x "$environment/bin/python" ] &&
            is_same "$environment/requirements.txt" "$requirements_file" && exit 0
        say "making the Python environment $environment (once)"
        fill_environment "$requirements_file"
    ) 9>"$environments/$name.lock" || exit "$exit_requirement_missing"
    note_use "$requirements_file"
}
