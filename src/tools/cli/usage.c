/* The text behind --help: see usage.h. */
#include "tools/cli/usage.h"

#include <stdio.h>

#include "base/program.h"

static const char usage_connection[] =
    "Where to connect:\n"
    "  -h <hostname>        Host name or address of the server (default 127.0.0.1).\n"
    "  -p <port>            Port (default 6379).\n"
    "  -s <socket>          Unix socket, in place of host and port.\n"
    "  -u <uri>             redis://user:password@host:port/db, or unix:///path/to/socket?db=1.\n"
    "  -n <db>              Database number.\n"
    "  -a <password>        Password; the environment variable REDISCLI_AUTH is the safer way.\n"
    "  --user <name>        ACL user the password belongs to.\n"
    "  --pass <password>    The same as -a.\n"
    "  --askpass            Ask for the password on the terminal.\n"
    "  --no-auth-warning    Do not warn about a password on the command line.\n"
    "  -2, -3               Speak RESP2, or RESP3.\n"
    "  -c                   Follow the redirections (MOVED, ASK) of a cluster.\n"
    "  --tls                Speak TLS; so does -u rediss://... The signature of the server's\n"
    "                       certificate is checked, its names are not.\n"
    "  --sni <host>         Name of the server to ask for (server name indication).\n"
    "  --cacert <file>      Certificates to trust; without this and the next the system's.\n"
    "  --cacertdir <dir>    Directory of certificates to trust.\n"
    "  --insecure           Trust any certificate.\n"
    "  --cert <file>        Certificate to show, and\n"
    "  --key <file>         its private key.\n"
    "  --tls-ciphers <list>  Ciphers of TLS up to 1.2, as ciphers(1ssl) has them.\n"
    "  --tls-ciphersuites <list>  Those of TLS 1.3.\n";

static const char usage_input[] =
    "What to send:\n"
    "  -r <count>           Run the command this often; -1: until stopped.\n"
    "  -i <seconds>         Pause after each run of -r, between the rounds of --stat, --scan\n"
    "                       and --latency-history, and after 100 SCANs of --bigkeys and its\n"
    "                       kin. Fractions are fine.\n"
    "  -x                   Read the last argument from standard input.\n"
    "  -X <tag>             Read the argument that is written <tag> from standard input.\n"
    "  --quoted-input       Arguments in quotes are read as quoted strings (\"a\\x00b\").\n"
    "  --eval <file>        Run a Lua script; keys and arguments follow, parted by a comma\n"
    "                       that stands alone: --eval s.lua key1 key2 , arg1\n"
    "  --ldb                With --eval: run the script under the debugger; \"help\" lists its\n"
    "                       commands. What the script changes is dropped at the end.\n"
    "  --ldb-sync-mode      The same in the server itself, which serves nobody else meanwhile;\n"
    "                       what the script changes stays.\n";

static const char usage_output[] =
    "How to print:\n"
    "  --raw                Values only (what a pipe or a file gets anyway).\n"
    "  --no-raw             Typed values (what a terminal gets anyway).\n"
    "  --csv                Comma-separated values.\n"
    "  --json               JSON, over RESP3 unless -2 is given too.\n"
    "  --quoted-json        JSON whose strings are ASCII: other bytes become \\xHH.\n"
    "  -d <delimiter>       Between the elements of a raw reply (default: a line feed).\n"
    "  -D <delimiter>       After each raw reply (default: a line feed).\n"
    "  --show-pushes <y|n>  Print RESP3 pushes (default: yes on a terminal).\n"
    "  -e                   An error reply goes to standard error and the exit status is 1.\n"
    "  --verbose            Tell, on standard error, each connection that is made.\n";

static const char usage_keys[] =
    "Looking at the keys:\n"
    "  --scan               List the keys with SCAN.\n"
    "  --bigkeys            Which keys have the most elements (or bytes, of strings), by type.\n"
    "  --memkeys            Which keys take the most memory, by type.\n"
    "  --memkeys-samples <n>  The same; <n> elements of each key are looked at (0: all).\n"
    "  --hotkeys            Which keys are read most; needs a maxmemory-policy with LFU.\n"
    "  --keystats           Memory, lengths, and how both are distributed.\n"
    "  --keystats-samples <n>  The same; <n> elements of each key are looked at.\n"
    "  --top <n>            List <n> keys (with --keystats; default 10).\n"
    "  --cursor <n>         Begin there (with --keystats; Ctrl-C tells where it was).\n"
    "  --pattern <glob>     Only keys that match.\n"
    "  --quoted-pattern <glob>  The same, read as a quoted string.\n"
    "  --count <n>          COUNT for SCAN.\n";

static const char usage_modes[] =
    "Other things to do:\n"
    "  --stat               A line of statistics every second (or -i seconds).\n"
    "  --latency            Measure PING until stopped; when not on a terminal for one second\n"
    "                       (or -i seconds), then print: min max average samples.\n"
    "  --latency-history    The same in periods of 15 seconds (or -i).\n"
    "  --latency-dist       The same as a spectrum, a row a second (or -i); needs 256 colours.\n"
    "  --mono               With --latency-dist: greys instead of colours.\n"
    "  --intrinsic-latency <s>  How long a process on this machine has to wait for a processor;\n"
    "                       takes <s> seconds and no server.\n"
    "  --lru-test <keys>    Write and read <keys> keys, a fifth of them most of the time, and\n"
    "                       tell how many reads find one.\n"
    "  --rdb <file>         Fetch the data set into an RDB file; -: standard output.\n"
    "  --functions-rdb <file>  The same of the functions only.\n"
    "  --replica, --slave   Print what the server sends to its replicas.\n"
    "  --pipe               Send standard input, as RESP or inline commands, and count replies.\n"
    "  --pipe-timeout <s>   Give up when no reply came for <s> seconds after the last byte was\n"
    "                       sent (default 30; 0: never).\n"
    "  --no-motd            As for KeyDB: there is no message of the day.\n"
    "  --help, --version    Print this text, or the version.\n"
    "\n"
    "redis-cli's --cluster (and KeyDB's --force for it) does not exist yet.\n";

void cli_usage_print(void)
{
    printf("%s %s\n\nUsage: %s [options] [command [argument ...]]\n\n", program_name(),
           program_version(), program_name());
    printf("%s\n%s\n%s\n%s\n%s\n", usage_connection, usage_input, usage_output, usage_keys,
           usage_modes);
    printf("Without a command there is a prompt, or commands are read from standard input, one a\n"
           "line. Type \"help\" at the prompt for more.\n");
}
