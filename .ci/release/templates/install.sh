#!/bin/sh
# Installs Terrace {{.Version}} from the archive for this machine. The archive must have the
# checksum that this script contains.
#
#   sh install.sh [-p PREFIX] [-a ADDRESS]
#
# PREFIX is the directory that gets bin and share: /usr/local for root, else ~/.local.
# ADDRESS is the URL of a mirror of the release.
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# platform prints the system and the processor of this machine by the names of the release.
platform() {
  case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "there is no archive for $(uname -s); on Windows, use winget or the zip file of the release" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) processor=amd64 ;;
    aarch64 | arm64) processor=arm64 ;;
    armv7* | armv8*) processor=arm ;;
    *) processor=$(uname -m) ;;
  esac
  echo "$system/$processor"
}

# download writes the content of a URL to a file.
download() {
  if has curl; then
    curl --fail --silent --show-error --location --output "$2" "$1"
  elif has wget; then
    wget -q -O "$2" "$1"
  else
    fail "neither curl nor wget is installed"
  fi
}

# checksum prints the SHA-256 of a file in hexadecimal digits.
checksum() {
  if has sha256sum; then
    sum=$(sha256sum "$1")
  elif has shasum; then
    sum=$(shasum -a 256 "$1")
  elif has openssl; then
    sum=$(openssl dgst -sha256 -r "$1")
  else
    fail "none of sha256sum, shasum and openssl is installed, so the archive cannot be checked"
  fi
  echo "${sum%% *}"
}

# place copies a file to a directory. It replaces the file at once, so that a running program
# keeps its own.
place() { # MODE FILE DIRECTORY [NAME]
  name=${4:-${2##*/}}
  mkdir -p "$3"
  cp "$2" "$3/.$name.new"
  chmod "$1" "$3/.$name.new"
  mv -f "$3/.$name.new" "$3/$name"
}

# The commands are in a function, so that an incomplete download of this script runs none.
main() {
  address={{sh .Address}}
  if [ "$(id -u)" = 0 ]; then
    prefix=/usr/local
  else
    prefix=${HOME:-}/.local
  fi
  while getopts a:p:h option; do
    case $option in
      a) address=${OPTARG%/} ;;
      p) prefix=$OPTARG ;;
      h)
        echo "usage: sh install.sh [-p PREFIX] [-a ADDRESS]"
        exit 0
        ;;
      *) exit 2 ;;
    esac
  done

  platform=$(platform)
  case $platform in
{{- range .Unix}}
    {{.System}}/{{.Processor}})
      archive={{.Name}}
      expected={{.SHA256}}
      ;;
{{- end}}
    *) fail "there is no archive for $platform" ;;
  esac

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  download "$address/$archive" "$work/archive" || fail "$address/$archive cannot be downloaded"
  found=$(checksum "$work/archive")
  if [ "$found" != "$expected" ]; then
    fail "$address/$archive has the wrong checksum, so nothing was installed
  expected: $expected
  found:    $found"
  fi
  mkdir "$work/files"
  tar -xzf "$work/archive" -C "$work/files"

  for program in terrace terrace-worker; do
    place 755 "$work/files/$program" "$prefix/bin"
  done
  for page in "$work"/files/man/man1/*.1; do
    place 644 "$page" "$prefix/share/man/man1"
  done
  place 644 "$work/files/completions/terrace.bash" "$prefix/share/bash-completion/completions" terrace
  place 644 "$work/files/completions/terrace.fish" "$prefix/share/fish/vendor_completions.d"
  place 644 "$work/files/completions/_terrace" "$prefix/share/zsh/site-functions"

  echo "Terrace {{.Version}} is installed in $prefix/bin."
  case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "$prefix/bin is not in PATH." ;;
  esac
}

main "$@"
