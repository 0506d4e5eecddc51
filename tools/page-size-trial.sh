#!/bin/sh
# Tries the arm64 executable of a release on a kernel with memory pages of 16 KiB, as a Raspberry Pi 5 has: boots Debian's
# kernel in QEMU with a file system that has only busybox, glibc and the executable. There a hub becomes ready, does a task
# with `luxhub worker`, and ends, several times.
#
#   sh tools/page-size-trial.sh EXECUTABLE [CYCLES]
#
# Needs apt-get, dpkg-deb, cpio, and Debian's qemu-system-arm. Downloads 95 MB of packages of Debian 13, each time.
set -eu

executable=${1:?usage: sh tools/page-size-trial.sh EXECUTABLE [CYCLES]}
cycles=${2:-3}
minutes=30

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM

# Packages of another Debian and another processor, with a configuration of their own: this system's is not touched.
mkdir -p "$place/lists/partial" "$place/cache/archives/partial" "$place/debs"
touch "$place/status"
echo 'deb [arch=arm64] http://deb.debian.org/debian trixie main' >"$place/sources.list"
cat >"$place/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::Etc::sourcelist "$place/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$place/lists";
Dir::State::status "$place/status";
Dir::Cache "$place/cache";
END
export APT_CONFIG="$place/apt.conf"
apt-get update -qq
kernel=$(apt-cache depends linux-image-arm64-16k | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
(cd "$place/debs" && apt-get download -qq "$kernel" busybox-static libc6)
unset APT_CONFIG

dpkg-deb --fsys-tarfile "$place"/debs/linux-image-*.deb | tar -x -C "$place" --wildcards './boot/vmlinuz-*'
root=$place/root
mkdir "$root"
for package in "$place"/debs/busybox-static_*.deb "$place"/debs/libc6_*.deb; do dpkg-deb -x "$package" "$root"; done
mkdir -p "$root/proc" "$root/dev" "$root/data"
[ -e "$root/bin" ] || ln -s usr/bin "$root/bin"
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
cp "$executable" "$root/luxhub"
chmod 755 "$root/luxhub"
cat >"$root/init" <<END
#!/bin/busybox sh
/usr/bin/busybox --install -s /usr/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
ip link set lo up
export HOME=/data LUXHUB_SECRET=secret-of-the-trial
echo "kernel \$(uname -r),\$(grep -m 1 KernelPageSize /proc/self/smaps | tr -s ' ')"
cycle=0
while [ \$cycle -lt $cycles ]; do
  cycle=\$((cycle + 1))
  mkdir /data/\$cycle
  cd /data/\$cycle
  /luxhub serve --host 127.0.0.1 --port 19104 --log json >log 2>&1 &
  hub=\$!
  tries=0
  until wget -q -O /dev/null http://127.0.0.1:19104/readyz 2>/dev/null || [ \$tries -eq 60 ]; do
    tries=\$((tries + 1))
    sleep 1
  done
  /luxhub task add Trial --description 'Say hello' >task 2>&1
  timeout 60 /luxhub worker --node trial-1 --once -- echo hello >work 2>&1
  worked=\$?
  kill -TERM \$hub
  wait \$hub
  ended=\$?
  if [ \$worked -eq 0 ] && [ \$ended -eq 0 ]; then echo "passed \$cycle"; else
    echo "failed \$cycle: worker \$worked, hub \$ended"
    cat task work log
  fi
  cd /
  rm -r /data/\$cycle
done
poweroff -f
END
chmod 755 "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) >"$place/initrd"

timeout $((minutes * 60)) qemu-system-aarch64 -M virt,gic-version=3 -cpu cortex-a76 -smp 2 -m 2048 \
  -nographic -nic none -no-reboot -kernel "$place"/boot/vmlinuz-* -initrd "$place/initrd" \
  -append 'console=ttyAMA0 rdinit=/init panic=-1 quiet' </dev/null | tee "$place/console"
passed=$(grep -c '^passed' "$place/console" || true)
echo "$passed of $cycles passed"
grep -q 'KernelPageSize: 16 kB' "$place/console" && [ "$passed" -eq "$cycles" ]
