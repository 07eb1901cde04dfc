#!/usr/bin/env bash
# Explores a program in four parts, with GNU parallel and as an array of Slurm jobs, joins them, and holds
# the result against that of one whole exploration. Slurm (munged, slurmctld, slurmd) is started here, for
# this user and on this machine only, with everything in a private folder, and ended afterwards.
# Usage: scripts/cluster.sh [parallel] [slurm]
#
# FORETELL_BIN is the folder with `foretell` (default: target/debug), FORETELL_LIB_DIR the one with plugin and
# runtime (default: where `cargo test` leaves them).
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${FORETELL_BIN:-target/debug}" && pwd)
export FORETELL_LIB_DIR=${FORETELL_LIB_DIR:-$bin/deps}
export PATH="$bin:/usr/sbin:$PATH"
folder=$(mktemp -d)
pids=()
finish() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT
cp scripts/cluster.c "$folder/readers.c"
cd "$folder"
foretell cc -O1 -g -pthread -o readers readers.c

# What has to be the same: the exit code, the classes, and the findings.
said() {
    python3 - "$1" <<'PYTHON'
import json, sys
result = json.load(open(sys.argv[1]))
explored = result["exploration"]
findings = sorted({(found["kind"], found["status"], found["fingerprint"]) for found in result["findings"]})
print(explored["classes"], explored["digest"], explored["covered"], findings)
PYTHON
}
# Ends with the exit code of a test or a merge, which is 10 here: there is a bug.
exit_of() { local code=0; "$@" >out.txt 2>err.txt || code=$?; echo "$code"; }

expect() {
    local code
    code=$(exit_of foretell merge --json merged.json "$@")
    if [ "$code $(said merged.json)" != "$whole" ]; then
        echo "FAILED: merged: $code $(said merged.json)" "whole:  $whole" >&2
        cat err.txt >&2
        exit 1
    fi
}

whole=$(exit_of foretell test --json whole.json ./readers)
whole="$whole $(said whole.json)"
echo "whole: $whole"
[ $# -gt 0 ] || set -- parallel slurm

for how in "$@"; do
    case $how in
    parallel)
        command -v parallel >/dev/null || { echo "SKIPPED: GNU parallel is not installed"; continue; }
        # Exit codes above 0 are what parallel counts as failures.
        parallel --will-cite -j 2 \
            foretell test --partition {}/4 --resume kept-{} --json part-{}.json ./readers \
            ::: 1 2 3 4 >parallel.txt 2>&1 || true
        expect part-*.json
        echo "GNU parallel: four parts are the same as one"
        rm -f part-*.json
        ;;
    slurm)
        for tool in munged slurmctld slurmd sbatch; do
            command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed"; continue 2; }
        done
        mkdir -p state spool munge
        chmod 700 munge
        dd if=/dev/urandom of=munge/key bs=128 count=1 status=none
        chmod 600 munge/key
        munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
            --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" \
            --seed-file="$folder/munge/seed" >munge/out 2>&1 &
        pids+=($!)
        host=$(hostname -s)
        port=$((20000 + $$ % 20000))
        cat >slurm.conf <<CONF
ClusterName=foretell
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
        export SLURM_CONF=$folder/slurm.conf
        slurmctld -D -f "$SLURM_CONF" >slurmctld.out 2>&1 &
        pids+=($!)
        slurmd -D -f "$SLURM_CONF" >slurmd.out 2>&1 &
        pids+=($!)
        # As in docs/src/long.md.
        cat >explore.sh <<'JOB'
#!/bin/sh
#SBATCH --array=1-4
foretell test --partition "$SLURM_ARRAY_TASK_ID/4" --resume "kept-slurm-$SLURM_ARRAY_TASK_ID" \
    --json "part-$SLURM_ARRAY_TASK_ID.json" ./readers
JOB
        for _ in $(seq 100); do
            sinfo -h -o %t 2>/dev/null | grep -q idle && break
            sleep 0.2
        done
        if ! timeout 120 sbatch --wait --output=slurm-%a.txt explore.sh >sbatch.txt 2>&1; then
            # Its exit code is that of the jobs, and 10 where a bug was found.
            grep -q Submitted sbatch.txt || {
                echo "FAILED: Slurm" >&2
                cat sbatch.txt munge/out slurmctld.out slurmctld.log slurmd.out slurmd.log >&2 || true
                exit 1
            }
        fi
        expect part-*.json
        echo "Slurm: an array of four parts is the same as one"
        rm -f part-*.json
        ;;
    *)
        echo "usage: scripts/cluster.sh [parallel] [slurm]" >&2
        exit 2
        ;;
    esac
done
