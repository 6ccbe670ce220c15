# Keeps one server for a program that may die at any time.
#
# usage: sh keeper.sh FOLDER SIGNAL
#
# Standard input is a pipe that the program alone can write to. Every line is an
# order, a call of a function below, answered by one line. When the program ends
# or lets go, the pipe closes: the server is sent SIGNAL, and FOLDER is removed.
# The keeper has a process group of its own, so no Ctrl-C reaches it.
folder=$1 signal=$2 server=

# Runs a command to its end; says its exit code.
run() { "$@" </dev/null >>"$folder/log" 2>&1; echo "$?"; }

# Starts the server; says its process id.
start() { "$@" </dev/null >>"$folder/log" 2>&1 & server=$!; echo "$server"; }

# Waits for the server, which is ending; says its exit code.
reap() { wait "$server"; echo "$?"; server=; }

while read -r order; do eval "$order"; done

if [ -n "$server" ]; then
    kill -s "$signal" "$server"
    kill -s CONT "$server"
    wait "$server"
fi
rm -rf "$folder"
