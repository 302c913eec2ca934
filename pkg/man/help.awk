# Reads what a program prints with --help. form=man: its options as they stand in a man page. form=words:
# the options alone, one a line, with = behind those that take a value.
#
# An option's line begins with one to three blanks and a dash; two blanks part it from its text, which
# goes on in lines that are indented further. A line that ends in a colon, and is not indented, is a
# heading; behind "Examples:" everything is shown as it is.

# "-h, --help <what>": names in bold, what is between < and > in italics.
function tag(text, at, shown)
{
    at = index(text, " <")
    shown = "\\fB" roff(at ? substr(text, 1, at - 1) : text) "\\fR"
    gsub(/, /, "\\fR, \\fB", shown)
    if (at) {
        shown = shown " \\fI" roff(substr(text, at + 2, length(text) - at - 2)) "\\fR"
    }
    return shown
}

function print_words(text, count, i, names, value)
{
    value = sub(/ <.*/, "", text) ? "=" : ""
    count = split(text, names, /, /)
    for (i = 1; i <= count; i++) {
        print names[i] value
    }
}

function take_option(line, at)
{
    sub(/^ +/, "", line)
    at = match(line, /  +/)
    if (form == "words") {
        print_words(substr(line, 1, at - 1))
        return
    }
    printf ".TP\n%s\n%s\n", tag(substr(line, 1, at - 1)), roff(substr(line, at + RLENGTH))
}

is_example {
    if (form == "man") {
        print roff($0)
    }
    next
}
/^Examples:$/ {
    is_example = 1
    if (form == "man") {
        print ".SH EXAMPLES\n.EX"
    }
    next
}
/^Options:$/ {
    has_begun = 1
    next
}
/^[^ ].*:$/ {
    has_begun = 1
    if (form == "man") {
        print ".SS " roff(substr($0, 1, length($0) - 1))
    }
    next
}
!has_begun {
    next
}
/^ ? ? ?-[^ ]*( <[^>]*>)?(, -[^ ]*( <[^>]*>)?)*  +[^ ]/ {
    take_option($0)
    is_paragraph = 1
    next
}
/^$/ {
    is_paragraph = 0
    next
}
form == "man" {
    line = $0
    sub(/^ +/, "", line)
    if (!is_paragraph) {
        print ".PP"
    }
    is_paragraph = 1
    print roff(line)
}
END {
    if (is_example && form == "man") {
        print ".EE"
    }
}
