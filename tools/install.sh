#!/bin/sh
# Installs luxhub: chooses the executable for this machine, verifies its SHA-256, and moves it into place.
#
#   sh install.sh [--to DIR] [FROM]
#
# FROM is the URL or the directory that has the executables; without it, LUXHUB_DOWNLOAD_URL, else the directory of this
# script. DIR is ~/.local/bin without --to. An older luxhub there is replaced only by one that has started.
set -eu

# `bun run release` fills these in.
VERSION='@VERSION@'
SUMS='@SUMS@'

usage='usage: sh install.sh [--to DIR] [FROM], where FROM is a URL or a directory'
unfinished=

say() {
  printf '%s\n' "$*"
}

# die MESSAGE [EXIT STATUS]
die() {
  printf 'install.sh: %s\n' "$1" >&2
  exit "${2:-1}"
}

have() {
  command -v "$1" >/dev/null 2>&1
}

# Sets `target`, which ends the executable's name, and `needs`, the processor.
choose() {
  system=$(uname -s)
  machine=$(uname -m)
  case $system in
    MINGW* | MSYS* | CYGWIN*) die "on Windows there is nothing to install: download luxhub-$VERSION-windows-x64.exe" ;;
    Linux | Darwin) ;;
    *) die "there is no executable for $system: luxhub runs on Linux, macOS and Windows" ;;
  esac
  # A program that macOS translates sees the processor that it was made for.
  if [ "$system" = Darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then machine=arm64; fi
  case $machine in
    x86_64 | amd64)
      machine=x64
      needs='a 64-bit x86 processor with SSE4.2 (Intel since 2008, AMD since 2011)'
      ;;
    aarch64 | arm64)
      machine=arm64
      needs='a 64-bit ARM processor (ARMv8, such as a Raspberry Pi 3, or Apple silicon)'
      ;;
    *) die "there is no executable for $system on $machine: luxhub needs a 64-bit x86 or ARM processor" ;;
  esac
  if [ "$system" = Darwin ]; then
    target=darwin-$machine
    return
  fi
  # The kernel may be a 64-bit one below a 32-bit system, as on some Raspberry Pis.
  if have getconf && [ "$(getconf LONG_BIT 2>/dev/null)" = 32 ]; then
    die 'this system is a 32-bit one: luxhub needs a 64-bit system'
  fi
  target=linux-$machine
  case $(ldd --version 2>&1 || true) in *musl*) target=$target-musl ;; esac
}

check_processor() {
  case $target in linux-x64*) ;; *) return 0 ;; esac
  if [ -r /proc/cpuinfo ] && ! grep -qw sse4_2 /proc/cpuinfo; then
    die 'this processor has no SSE4.2. A virtual machine may hide it: give it the processor type of its host'
  fi
}

# The checksum of an executable; empty if this release does not have it.
published_sum() {
  printf '%s\n' "$SUMS" | while read -r sum name; do
    if [ "$name" = "$1" ]; then printf '%s' "$sum"; fi
  done
}

# The SHA-256 of a file.
sum_of() {
  # shellcheck disable=SC2046 # the first word is the sum
  if have sha256sum; then
    set -- $(sha256sum <"$1")
  elif have shasum; then
    set -- $(shasum -a 256 <"$1")
  else
    set -- $(openssl dgst -sha256 -r <"$1")
  fi
  printf '%s' "$1"
}

# download URL FILE
download() {
  if have curl; then
    if [ -t 2 ]; then progress=--progress-bar; else progress=--silent; fi
    curl --fail --location --show-error --connect-timeout 20 $progress --output "$2" "$1" || return 1
  else
    if [ -t 2 ]; then progress=; else progress=-q; fi
    wget $progress -O "$2" "$1" || return 1
  fi
}

# get FROM NAME FILE
get() {
  case $1 in
    http://* | https://*)
      have curl || have wget || die 'a download needs curl or wget: install one, or give the directory of a copy'
      say "download   ${1%/}/$2"
      download "${1%/}/$2" "$3" || die "${1%/}/$2 cannot be downloaded"
      ;;
    *)
      [ -f "$1/$2" ] || die "there is no file ${1%/}/$2"
      say "copy       ${1%/}/$2"
      cp "$1/$2" "$3" || die "${1%/}/$2 cannot be copied"
      ;;
  esac
}

show_path() {
  case ":${PATH:-}:" in
    *":$1:"*)
      found=$(command -v luxhub || true)
      if [ "$found" != "$1/luxhub" ]; then say "Another luxhub is earlier in PATH: $found"; fi
      ;;
    *) say "It is not in PATH yet: export PATH=\"$1:\$PATH\"" ;;
  esac
}

main() {
  to=
  from=
  while [ $# -gt 0 ]; do
    case $1 in
      --to)
        [ $# -ge 2 ] || die "$usage" 2
        to=$2
        shift
        ;;
      --to=*) to=${1#--to=} ;;
      -h | --help) say "$usage" && exit 0 ;;
      -*) die "$usage" 2 ;;
      *)
        [ -z "$from" ] || die "$usage" 2
        from=$1
        ;;
    esac
    shift
  done
  choose
  say "luxhub $VERSION for $target, which needs $needs"
  check_processor
  name=luxhub-$VERSION-$target
  expected=$(published_sum "$name")
  [ -n "$expected" ] || die "luxhub $VERSION has no executable for $target"
  have sha256sum || have shasum || have openssl || die 'no tool for SHA-256 here: install sha256sum, shasum or openssl'

  case $0 in */*) own=${0%/*} ;; *) own=. ;; esac
  from=${from:-${LUXHUB_DOWNLOAD_URL:-}}
  if [ -z "$from" ] && [ -f "$own/$name" ]; then from=$own; fi
  [ -n "$from" ] || die "say where $name is: sh install.sh URL" 2
  if [ -z "$to" ]; then
    [ -n "${HOME:-}" ] || die 'there is no home directory: name a directory with --to' 2
    to=$HOME/.local/bin
  fi
  mkdir -p "$to" || die "$to cannot be made: name another directory with --to"
  to=$(cd "$to" && pwd)
  [ ! -d "$to/luxhub" ] || die "$to/luxhub is a directory: name another one with --to"

  trap 'rm -f "$unfinished"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  unfinished=$(mktemp "$to/.luxhub.XXXXXX") || die "$to cannot be written: name another directory with --to"
  get "$from" "$name" "$unfinished"
  found=$(sum_of "$unfinished")
  [ "$found" = "$expected" ] || die "$name is damaged or not of this release: its SHA-256 is $found, not $expected"
  say "verified   SHA-256 $expected"
  chmod 755 "$unfinished"
  started=$("$unfinished" version 2>&1) || die "it does not start here, so nothing is installed (Alpine needs: apk add libstdc++): $started"
  if [ -e "$to/luxhub" ]; then done=replaced; else done=installed; fi
  mv -f "$unfinished" "$to/luxhub"
  printf '%-10s %s\n' "$done" "$to/luxhub"
  show_path "$to"
}

# At the end, so that a script that arrives only in part does nothing.
main "$@"
