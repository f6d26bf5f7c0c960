"""A manual page of a command line, from what ArgumentParser tells of it (--experimental-dump-help)."""

import collections

from roff import bold, escaped, heading, italic, item, line, paragraphs

#: In how many commands a titled group of options has to be for being listed once, in a section of its own.
SHARED = 3
#: What ArgumentParser adds to everything.
UNIVERSAL = ("help", "version")


def page(told, version, date, fragment):
    name = told["commandName"]
    source = f"{name} {version}".strip()
    commands = [command for command in told.get("subcommands", []) if command["commandName"] != "help"]
    shared = groups(commands)
    sections = [
        heading(name, 1, date, source, "User Commands"),
        f'.SH NAME\n{escaped(name)} \\- {line(sentence(told.get("abstract", "")))}',
        f".SH SYNOPSIS\n{bold(name)} {italic('command')} [{italic('option')} ...]\n.br\n"
        f"{bold(name)} {bold('help')} [{italic('command')}]",
    ]
    if told.get("discussion"):
        sections.append(".SH DESCRIPTION\n" + paragraphs(told["discussion"]))
    sections.append(".SH COMMANDS\n" + "\n".join(described(command, [name], shared) for command in commands))
    for title, options in shared.items():
        sections.append(f".SH {title.upper()} OPTIONS\n" + "\n".join(option(argument) for argument in options))
    return "\n".join(sections) + "\n" + fragment


def has_version(told):
    return any(flag(argument) == "--version" for argument in told.get("arguments", []))


def leaves(commands):
    for command in commands:
        yield command
        yield from leaves(command.get("subcommands", []))


def groups(commands):
    """The groups of options that many commands take, by title."""
    found = collections.defaultdict(list)
    for command in leaves(commands):
        titles = dict.fromkeys(argument.get("sectionTitle") for argument in arguments(command))
        for title in titles:
            found[title].append([argument for argument in arguments(command) if argument.get("sectionTitle") == title])
    return {title: options[0] for title, options in found.items() if title and len(options) >= SHARED}


def described(command, parents, shared):
    if not command.get("shouldDisplay", True):
        return ""
    path = [*parents, command["commandName"]]
    parts = [f'.SS "{escaped(" ".join([*path, *operands(command)]))}"', line(command.get("abstract", ""))]
    if command.get("discussion"):
        parts.append(".PP\n" + paragraphs(command["discussion"]))
    own = [argument for argument in arguments(command) if argument.get("sectionTitle") not in shared]
    parts += [option(argument) for argument in own]
    taken = [title for title in shared if any(argument.get("sectionTitle") == title for argument in arguments(command))]
    if taken:
        parts.append(f".PP\nAlso takes the {and_list([title.lower() for title in taken])} options.")
    parts += [described(inner, path, shared) for inner in command.get("subcommands", []) if inner["commandName"] != "help"]
    return "\n".join(part for part in parts if part)


def arguments(command):
    return [
        argument for argument in command.get("arguments", [])
        if argument.get("shouldDisplay", True) and preferred(argument).get("name") not in UNIVERSAL
    ]


def operands(command):
    values = [argument for argument in arguments(command) if argument["kind"] == "positional"]
    return [f"[{argument['valueName']}]" if argument.get("isOptional") else argument["valueName"] for argument in values]


def preferred(argument):
    return argument.get("preferredName") or {}


def flag(argument):
    name = preferred(argument)
    return {"long": "--", "short": "-", "longWithSingleDash": "-"}.get(name.get("kind"), "") + name.get("name", "")


def option(argument):
    if argument["kind"] == "positional":
        term = italic(argument["valueName"])
    else:
        spellings = [flag({"preferredName": name}) for name in argument.get("names", [])]
        term = ", ".join(bold(spelling) for spelling in spellings)
        if argument["kind"] == "option":
            term += f" {italic(argument.get('valueName', 'value'))}"
    text = line(argument.get("abstract", ""))
    default = argument.get("defaultValue")
    if default and argument["kind"] != "flag":
        text += f" Default: {line(default)}."
    if argument.get("discussion"):
        text += "\n.IP\n" + paragraphs(argument["discussion"])
    return item(term, text or r"\&")


def sentence(text):
    """As a name's line has it: no capital it does not need, no full stop."""
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]


def and_list(words):
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
