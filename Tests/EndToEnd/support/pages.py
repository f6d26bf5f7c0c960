"""The code blocks of a page, run as a reader would run them: in order, in terminals, with what the page says before each."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field

from support.deadline import until
from support.hub import BINARY

LANGUAGES = ("sh", "sql", "python")
DIRECTIVE = re.compile(r"<!-- test: (.*?) -->")


@dataclass
class Block:
    """A fenced block, and what the comment before it says of its test; or such a comment by itself, with no language."""
    line: int
    heading: str
    language: str
    text: str
    directive: str


def blocks(page):
    """All blocks of a page in LANGUAGES, and what terminals are to have printed between them."""
    found, heading, pending, open_block = [], "", None, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if open_block is not None:
            if line.strip() == "```":
                if open_block.language in LANGUAGES:
                    found.append(open_block)
                open_block = None
            else:
                open_block.text += line + "\n"
            continue
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if match := DIRECTIVE.fullmatch(line.strip()):
            if re.match(r"terminal \w+ (prints|ends)", match[1]):
                found.append(Block(number, heading, "", "", match[1]))
            else:
                pending = match[1]
        elif line.strip().startswith("```"):
            open_block = Block(number, heading, line.strip()[3:].split()[0] if line.strip()[3:] else "", "", pending or "")
            pending = None
        elif line.strip():
            assert pending is None, f"{page.name}:{number}: a comment about a test without a block"
    return found


@dataclass
class Terminal:
    """A shell that runs one block and keeps running."""
    process: subprocess.Popen
    output: list = field(default_factory=list)

    def read(self):
        for line in self.process.stdout:
            self.output.append(line)

    @property
    def text(self):
        return "".join(self.output)


class Reader:
    """Somebody who does what a page says, in a folder.

    - A block without a comment runs in the first terminal; it fails the test where one of its commands fails.
    - `test: skip, WHY`: not run.
    - `test: terminal NAME, until "TEXT"`: runs in another terminal, and goes on; the next block waits for the text.
    - `test: background NAME, until "TEXT"`: the same, in the first terminal's environment.
    - `test: prints "TEXT"`: the block's output has it.
    - `test: terminal NAME prints "TEXT" and not "TEXT"`: by then, or in a while.
    - `test: terminal NAME ends`: Ctrl-C.
    - SQL goes to psql on ROOST_DATABASE_URL, or as the page itself printed how to call it.
    """

    def __init__(self, environment, replaced=()):
        """`replaced`: what a reader is to put in place of what a page says."""
        # Reachable for psql, whoever runs it.
        self.folder = tempfile.mkdtemp(prefix="roost-page-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        os.makedirs(f"{self.folder}/.build")
        os.symlink(os.path.dirname(BINARY), f"{self.folder}/.build/release")
        self.environment, self.replaced = environment, replaced
        self.state = f"{self.folder}/.state"
        self.terminals, self.psql, self.ran, self.skipped = {}, None, 0, []

    def follow(self, page, of=None):
        """Does what the page says, below the headings `of`."""
        for block in blocks(page):
            if of is None or block.heading in of:
                self.do(block, f"{page.name}:{block.line}")

    def do(self, block, where):
        text = block.text
        for old, new in self.replaced:
            text = text.replace(old, new)
        match block.directive.split(maxsplit=1):
            case ["skip,", why]:
                assert len(why) > 10, f"{where}: why?"
                self.skipped.append(where)
                return
            case ["terminal", rest] if " prints " in rest:
                return self.expect(rest, where)
            case ["terminal", rest] if rest.endswith(" ends"):
                return self.end(self.terminals[rest.removesuffix(" ends")])
            case ["terminal" | "background" as kind, rest]:
                self.open(kind, rest, block.language, text, where)
            case ["prints", wanted]:
                output = self.run(block.language, text, where)
                assert shlex.split(wanted)[0] in output, f"{where}: {output}"
            case []:
                self.run(block.language, text, where)
            case _:
                raise AssertionError(f"{where}: what is {block.directive!r}?")
        self.ran += 1

    def run(self, language, text, where):
        if language == "sql":
            psql = self.psql or 'psql "$ROOST_DATABASE_URL"'
            script = f"{psql} -X -v ON_ERROR_STOP=1 <<'SQL_OF_PAGE'\n{text}\nSQL_OF_PAGE\n"
        elif re.fullmatch(r'(\. \S+\n)?psql "\$\w+"', text.strip()):
            return ""  # A prompt for the SQL that follows.
        else:
            script = text
        done = subprocess.run(
            ["bash", "-c", f"[ ! -e {self.state} ] || . {self.state}\nset -e\n{script}\nset +e\n"
             f"{{ declare -px | grep -v 'declare -[a-z]*r'; declare -f; }} > {self.state}"],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        output = done.stdout + done.stderr
        assert done.returncode == 0, f"{where}: status {done.returncode}: {output}"
        for line in done.stdout.splitlines():
            if re.match(r"\S*psql ", line):
                self.psql = line
        return output

    def open(self, kind, rest, language, text, where):
        name, until_text = re.fullmatch(r'(\w+), until "(.*)"', rest).groups()
        state = f"[ ! -e {self.state} ] || . {self.state}\n" if kind == "background" else ""
        if language == "python":
            path = f"{self.folder}/{name}.py"
            with open(path, "w") as file:
                file.write(text)
            text = f"exec python3 -u {path}\n"
        process = subprocess.Popen(
            ["bash", "-c", state + "set -e\n" + text], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        terminal = self.terminals[name] = Terminal(process)
        threading.Thread(target=terminal.read, daemon=True).start()
        until(lambda: until_text in terminal.text or process.poll() is not None, 60, lambda: f"{where}: {terminal.text}")
        assert until_text in terminal.text, f"{where}: it ended with {process.returncode}: {terminal.text}"

    def expect(self, rest, where):
        name, wanted, unwanted = re.fullmatch(r'(\w+) prints "(.*?)"(?: and not "(.*)")?', rest).groups()
        terminal = self.terminals[name]
        until(lambda: wanted in _without(terminal.text, unwanted), 60, lambda: f"{where}: {terminal.text}")
        assert not unwanted or unwanted not in terminal.text, f"{where}: {terminal.text}"

    def end(self, terminal):
        if terminal.process.poll() is None:
            os.killpg(terminal.process.pid, signal.SIGINT)
            try:
                terminal.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(terminal.process.pid, signal.SIGKILL)
                terminal.process.wait()

    def leave(self):
        for terminal in self.terminals.values():
            self.end(terminal)
        shutil.rmtree(self.folder, ignore_errors=True)


def _without(text, part):
    return text.replace(part, "") if part else text
