#!/bin/sh
# The password comes from the environment, so that no file of the image holds it.
set -eu
umask 077
quoted() { printf '%s' "$1" | sed 's/"/""/g'; }
printf '"%s" "%s"\n' "$(quoted "$POSTGRES_USER")" "$(quoted "$POSTGRES_PASSWORD")" > /run/pgbouncer/users.txt
exec pgbouncer /etc/pgbouncer/pgbouncer.ini
