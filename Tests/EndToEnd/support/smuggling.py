"""Requests that two readers of one connection may read in two ways, and two second opinions on them: h11, and llhttp,
which is Node's parser."""

import re
import urllib.parse
from dataclasses import dataclass

import h11
import httptools

#: Where what is sent is heard again, byte by byte.
PATH = "/realtime/v1/api/broadcast/{topic}/events/{event}"


@dataclass(frozen=True)
class Request:
    """What one request says, as far as it counts here."""
    method: str
    target: str
    body: bytes

    @property
    def event(self):
        """Of a broadcast; None for everything else."""
        found = re.fullmatch(r"/realtime/v1/api/broadcast/[^/]+/events/(\w+)", urllib.parse.urlsplit(self.target).path)
        return found[1] if found and self.method == "POST" else None


def post(topic, event, token, lines, body=b"", head="POST {path} HTTP/1.1"):
    """A broadcast of raw bytes. `lines` stand behind all others."""
    path = PATH.format(topic=topic, event=event)
    return "\r\n".join([
        head.replace("{path}", path), "Host: hub.test", f"Authorization: Bearer {token}",
        "Content-Type: application/octet-stream", *lines, "", ""]).encode("latin-1") + body


@dataclass(frozen=True)
class Candidate:
    name: str
    #: Whether a strict server takes it.
    taken: bool
    #: Lines of the head. In them, and in the body, `{n}` is the hidden request's size, `{all}` the size of the body.
    lines: tuple = ()
    #: With `{hidden}` where the hidden request is.
    body: str = "{hidden}"
    head: str = "POST {path} HTTP/1.1"
    #: Whether the body is sent after the head has been read.
    is_split: bool = False

    def bytes(self, topic, token, hidden, event="outer"):
        """With a request hidden in what should be the body, or behind it."""
        def filled(text):
            return text.encode("latin-1").replace(b"{n}", b"%d" % len(hidden)).replace(b"{x}", b"%x" % len(hidden))
        body = filled(self.body).replace(b"{hidden}", hidden)
        lines = [line.replace("{n}", str(len(hidden))).replace("{all}", str(len(body))) for line in self.lines]
        return post(topic, event, token, lines, body, self.head)

    def __str__(self):
        return self.name


def _candidates():
    def refused(name, *lines, **parts):
        yield Candidate(name, False, lines, **parts)

    def taken(name, *lines, **parts):
        yield Candidate(name, True, lines, **parts)

    length, chunked = "Content-Length: {all}", "Transfer-Encoding: chunked"
    one_chunk = "{x}\r\n{hidden}\r\n0\r\n\r\n"
    yield from taken("length", length)
    yield from taken("chunked", chunked, body=one_chunk)
    # Names that are the beginning of others. libwebsockets 4.1 reads the next line as their value.
    for name in ("X", "X-Auth", "X-", "If", "Proxy", "Content", "Content-", "C", "A", "Accept", "Sec", "Sec-WebSocket", "T",
                 "Transfer", "Ho", "U", "O", "Forwarded", "get", "Expect-"):
        yield from taken(f"{name} before the length", f"{name}: a", length)
        yield from taken(f"{name} before chunked", f"{name}: a", chunked, body=one_chunk)
    # Not of the path of broadcasts, from which a GET reads without end.
    for name in ("X", "X-Auth", "If", "Proxy", "Content"):
        yield from taken(
            f"{name} before the length of a GET", f"{name}: a", length, head="GET /none HTTP/1.1", is_split=True)
    # Length and chunks.
    short = "0\r\n\r\n{hidden}"
    yield from refused("length and chunked", length, chunked, body=short)
    yield from refused("chunked and length", chunked, length, body=short)
    yield from refused("chunked and a short length", chunked, "Content-Length: 4", body=one_chunk)
    for name in (" chunked", "chunked, identity", "identity, chunked", "xchunked", "chunkedx", "chunked,", "gzip, chunked",
                 "chunked, chunked", "identity", "chunked;q=1", "\"chunked\"", "\x0bchunked", "\x0cchunked", "\xa0chunked",
                 "chunked\x0c", "chunked\0", "chunked\x7f", "chunked\x85", "chunked identity", "chunked, ", ", chunked",
                 "chunked,,", "trailers, chunked", "chun\tked", ""):
        bad = name.strip(" ") != "chunked"
        yield from refused(f"length and coding {name!r}", length, f"Transfer-Encoding: {name}", body=short)
        if bad:
            yield from refused(f"coding {name!r}", f"Transfer-Encoding: {name}", body=one_chunk)
    yield from taken("chunked behind a tab", "Transfer-Encoding:\tchunked", body=one_chunk)
    yield from refused("chunked before a tab", "Transfer-Encoding: chunked\t", body=one_chunk)
    yield from taken("chunked in capitals", "TRANSFER-ENCODING: CHUNKED", body=one_chunk)
    yield from refused("chunked twice", chunked, chunked, body=one_chunk)
    yield from refused("chunked in two lines", chunked, "Transfer-Encoding: identity", body=one_chunk)
    yield from refused("chunked in two lines, the other way", "Transfer-Encoding: identity", chunked, body=one_chunk)
    yield from refused("chunked and an empty coding", chunked, "Transfer-Encoding:", body=one_chunk)
    yield from refused("chunked and an empty length", chunked, "Content-Length:", body=one_chunk)
    yield from refused("chunked and two lengths", chunked, "Content-Length: 5, 5", body=one_chunk)
    yield from taken("TE is no coding", "TE: chunked", length)
    yield from taken("Content-Encoding is no coding", "Content-Encoding: chunked", length)
    yield from taken("a length among the trailers' names", "Trailer: Content-Length", chunked, body=one_chunk)
    # A proxy that drops what Connection names must not drop these.
    yield from taken("Connection names the length", "Connection: Content-Length", length)
    yield from taken("Connection names the coding", "Connection: Transfer-Encoding", chunked, body=one_chunk)
    yield from refused("chunked, folded", "Transfer-Encoding:\r\n chunked", body=one_chunk)
    yield from refused("chunked in HTTP/1.0", chunked, body=one_chunk, head="POST {path} HTTP/1.0")
    for name in ("Transfer-Encoding ", "Transfer-Encoding\t", " Transfer-Encoding", "Transfer_Encoding\0", "Transfer Encoding",
                 "\0Transfer-Encoding", "\x0bTransfer-Encoding", "Transfer-Encoding\r", "Transfer-Encoding\n", "Transfer-\r\nEncoding",
                 "Transfer-Encod\xeeng", "\xa0Transfer-Encoding", "Transfer-Encoding:"):
        yield from refused(f"length and {name!r}", length, f"{name}: chunked", body=short)
    yield from taken("Transfer_Encoding", length, "Transfer_Encoding: chunked")
    # Lengths.
    yield from refused("two lengths", length, "Content-Length: 0")
    yield from refused("two lengths, the other way", "Content-Length: 0", length)
    yield from refused("a length twice", length, length)
    for text in ("0, {n}", "{n}, {n}", "+{n}", "-1", "0x{n}", "{n} 0", "{n}a", "", "{n}.0", "'{n}'", "99999999999999999999",
                 "\x0b{n}", "-0", "+0", "0_{n}", "{n}e0", "0o{n}", "{n},", ",{n}", "{n};", "{n}\0", "{n}\x0c", "{n}\xa0", "\xb2",
                 "9223372036854775808", "18446744073709551616", "chunked", "{n}\t{n}"):
        yield from refused(f"length {text!r}", f"Content-Length: {text}")
    yield from taken("length with a zero in front", "Content-Length: 0{n}")
    yield from refused("length with many zeros in front", "Content-Length: " + "0" * 300 + "{n}")
    yield from taken("length behind tabs", "Content-Length:\t {n}\t")
    for name in ("Content-Length ", "Content-Length\t", " Content-Length", "Content-Length\0", "Content Length", "",
                 "Content-Length\r", "Content-Length\n", "Content-\r\nLength", "\0Content-Length", "Content-Length\xa0",
                 "Content-Length:", "\"Content-Length\""):
        yield from refused(f"length in {name!r}", f"{name}: {{n}}")
    # Lines.
    yield from refused("bare LF before the length", "A: b\nContent-Length: {n}")
    yield from refused("bare CR before the length", "A: b\rContent-Length: {n}")
    yield from refused("two CRs before the length", "A: b\r\r\nContent-Length: {n}")
    yield from refused("NUL before the length", "A: b\0\r\nContent-Length: {n}")
    yield from refused("length folded into another", "A: b\r\n Content-Length: {n}")
    yield from refused("length, folded", "Content-Length:\r\n {n}")
    yield from refused("line without a colon", "Abc", length)
    yield from refused("head that ends with LF LF", "A: b\n", body="A: b\r\n\r\n{hidden}")
    # What asks for something besides.
    yield from taken("body at once, though it expects to be told", "Expect: 100-continue", length)
    yield from taken("Expect of something else", "Expect: 200-ok", length)
    yield from taken("Expect of several", "Expect: x, 100-continue", "Expect: 100-continue", chunked, body=one_chunk)
    yield from taken("Expect of nothing", "Expect:", length)
    yield from taken("upgrade to HTTP/2", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", length)
    yield from taken("upgrade of a POST to a WebSocket", "Upgrade: websocket", "Sec-WebSocket-Version: 13", chunked, body=one_chunk)
    # Request lines and hosts.
    for name, head in {
        "two spaces": "POST  {path} HTTP/1.1", "tab": "POST\t{path} HTTP/1.1", "space behind": "POST {path} HTTP/1.1 ",
        "space within": "POST {path} a HTTP/1.1", "lower case": "POST {path} http/1.1", "HTTP/2.0": "POST {path} HTTP/2.0",
        "HTTP/1.10": "POST {path} HTTP/1.10", "no version": "POST {path}", "bare LF": "POST {path} HTTP/1.1\nA: b",
        "fragment": "POST {path}#a HTTP/1.1", "backslash": "POST \\{path} HTTP/1.1", "no method": " {path} HTTP/1.1",
        "method with a colon": "PO:ST {path} HTTP/1.1", "UTF-8": "POST /ä{path} HTTP/1.1",
        "another host": "POST http://other.test{path} HTTP/1.1", "userinfo": "POST http://a@hub.test{path} HTTP/1.1", "the host as userinfo": "POST http://hub.test@other.test{path} HTTP/1.1",
        "no host": "POST http://{path} HTTP/1.1", "one slash": "POST http:/hub.test{path} HTTP/1.1",
        "two hosts": "POST http://hub.test,other.test{path} HTTP/1.1", "port of another": "POST http://hub.test:81{path} HTTP/1.1",
        "scheme of a WebSocket": "POST ws://hub.test{path} HTTP/1.1", "host without a scheme": "POST hub.test{path} HTTP/1.1",
        "backslash in the host": "POST http://hub.test\\@other.test{path} HTTP/1.1", "asterisk": "POST * HTTP/1.1",
        "NUL in the method": "PO\0ST {path} HTTP/1.1", "NUL in the target": "POST {path}\0 HTTP/1.1",
        "NUL behind the version": "POST {path} HTTP/1.1\0", "tab behind": "POST {path} HTTP/1.1\t", "comma": "POST {path} HTTP/1,1",
        "HTTP/01.1": "POST {path} HTTP/01.1", "HTTP/+1.1": "POST {path} HTTP/+1.1", "HTTP/1.": "POST {path} HTTP/1.",
        "HTTP/0.9": "POST {path} HTTP/0.9", "HTTP/3.0": "POST {path} HTTP/3.0", "another protocol": "POST {path} ICE/1.0",
        "form feed": "POST {path}\x0cHTTP/1.1", "CR alone": "POST {path} HTTP/1.1\rA: b", "escaped line": "POST {path}%0 HTTP/1.1",
    }.items():
        yield from refused(f"request line: {name}", length, head=head)
    yield from taken("absolute-form", length, head="POST http://hub.test{path} HTTP/1.1")
    yield from taken("absolute-form in capitals", length, head="POST HTTPS://HUB.test{path} HTTP/1.1")
    yield from taken("empty line before", length, head="\r\nPOST {path} HTTP/1.1")
    yield from refused("two empty lines before", length, head="\r\n\r\nPOST {path} HTTP/1.1")
    yield from refused("two Hosts", "Host: other.test", length)
    yield from refused("the same Host twice", "Host: hub.test", length)
    yield from refused("an empty Host besides", "Host:", length)
    yield from refused("Host with a space behind its name", "Host : hub.test", length)
    yield from refused("space before the first field", length, head="POST {path} HTTP/1.1\r\n A: b")
    # Chunks.
    for name, size in {
        "0x": "0x{x}", "plus": "+{x}", "minus": "-1", "space behind": "{x} ", "space before": " {x}", "tab": "{x}\t",
        "17 digits": "000000000000000000000{x}", "overflow": "10000000000000000", "negative": "ffffffffffffffff",
        "none": "", "extension alone": ";a", "comma": "{x},0", "bare CR behind": "{x}\r", "NUL": "{x}\0",
        "bare LF in the extension": "{x};a\nb", "bare CR in the extension": "{x};a\rb",
        "LF before the extension": "{x}\n;a", "CRLF before the extension": "{x}\r\n;a", "CR behind the extension": "{x};a\r",
        "LF in a quoted extension": "{x};a=\"\n\"", "NUL in the extension": "{x};a\0", "DEL in the extension": "{x};a\x7f",
        "Latin-1 in the extension": "{x};\xe4", "underscore": "0_{x}", "h": "{x}h", "capital 0X": "0X{x}", "form feed": "{x}\x0c",
        "no-break space": "{x}\xa0", "two sizes": "{x} 0", "empty line before": "\r\n{x}", "dot": "{x}.0", "a space alone": " ",
        "just too large for its integer": "8000000000000000", "zeros without end": "0" * 400 + "{x}",
    }.items():
        yield from refused(f"chunk size: {name}", chunked, body=f"{size}\r\n{{hidden}}\r\n0\r\n\r\n")
    yield from refused("chunk size: bare LF", chunked, body="{x}\n{hidden}\r\n0\r\n\r\n")
    yield from refused("chunk without its CRLF", chunked, body="5\r\nhello0\r\n\r\n{hidden}")
    yield from refused("chunk with two bytes instead", chunked, body="5\r\nhelloXX0\r\n\r\n{hidden}")
    yield from refused("chunk with LF", chunked, body="5\r\nhello\n0\r\n\r\n{hidden}")
    yield from refused("chunk that ends in CR CR LF", chunked, body="5\r\nhello\r\r\n0\r\n\r\n{hidden}")
    yield from refused("chunk that ends in LF CR", chunked, body="5\r\nhello\n\r0\r\n\r\n{hidden}")
    yield from refused("chunk that ends in CR alone", chunked, body="5\r\nhello\r0\r\n\r\n{hidden}")
    yield from refused("chunk longer than its size", chunked, body="1\r\nhello\r\n0\r\n\r\n{hidden}")
    yield from refused("chunk shorter than its size", chunked, body="7\r\nhello\r\n0\r\n\r\n{hidden}")
    yield from refused("last chunk with CR alone", chunked, body="0\r\r\n{hidden}")
    yield from refused("last chunk with an extension and CR alone", chunked, body="0;\r{hidden}")
    yield from refused("last chunk with content", chunked, body="0\r\nhello\r\n\r\n{hidden}")
    yield from refused("last chunk with LF", chunked, body="0\n\n{hidden}")
    yield from refused("trailers that end with LF", chunked, body="0\r\nA: b\n\r\n{hidden}")
    yield from refused("trailer without a colon", chunked, body="0\r\nPOST / HTTP/1.1\r\n\r\n{hidden}")
    for name, line in {
        "a coding": "Transfer-Encoding: chunked", "a Host": "Host: other.test", "a length in capitals": "CONTENT-LENGTH: {n}",
        "a space before the colon": "A : b", "a fold": "A: b\r\n c", "a fold alone": " A: b", "a bare CR": "A: b\rC: d",
        "a bare LF": "A: b\nContent-Length: {n}", "NUL": "A: \0", "NUL in its name": "A\0: b", "no name": ": b",
    }.items():
        yield from refused(f"trailer with {name}", chunked, body=f"0\r\n{line}\r\n\r\n{{hidden}}")
    yield from refused("trailer with a length", chunked, body="0\r\nContent-Length: {n}\r\n\r\n{hidden}")
    yield from taken("chunk size in 16 digits", chunked, body="0000000000000005\r\nhello\r\n0\r\n\r\n")
    yield from taken("chunk extension", chunked, body="{x};a=b;c=\"d\"\r\n{hidden}\r\n0;e\r\n\r\n")
    yield from taken("long chunk extension", chunked, body="{x};a=" + "b" * 3_000 + "\r\n{hidden}\r\n0\r\n\r\n")
    yield from taken("chunk extension with a quoted semicolon", chunked, body="{x};a=\"b;c\";d\r\n{hidden}\r\n0\r\n\r\n")
    yield from taken("chunk size in capitals", chunked, body="00A\r\n0123456789\r\n0\r\n\r\n")
    yield from taken("last chunk of many zeros", chunked, body="5\r\nhello\r\n0000000000000000\r\n\r\n")
    yield from taken("chunks that look like an end", chunked, body="5\r\n0\r\n\r\n\r\n7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n")
    yield from taken("trailers", chunked, body="5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n")


CANDIDATES = list(_candidates())


# Second opinions: the requests that a connection's bytes are read as, up to where the reader gives up.

def as_h11(data, most=100):
    requests = []
    while data and len(requests) < most:
        connection = h11.Connection(h11.SERVER)
        # An empty line may stand before a request (RFC 9112, section 2.2); h11 knows none.
        connection.receive_data(data.removeprefix(b"\r\n"))
        head, body = None, b""
        try:
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed):
                    return requests
                if isinstance(event, h11.Request):
                    head = event
                else:
                    body += event.data
        except h11.RemoteProtocolError:
            return requests
        requests.append(Request(head.method.decode(), head.target.decode(), body))
        data = connection.trailing_data[0]
    return requests


class _Collector:
    def __init__(self):
        self.requests = []

    def on_message_begin(self):
        self.target, self.body = b"", b""

    def on_url(self, piece):
        self.target += piece

    def on_body(self, piece):
        self.body += piece

    def on_message_complete(self):
        self.requests.append(Request(self.parser.get_method().decode(), self.target.decode("latin-1"), self.body))


def as_llhttp(data):
    collector = _Collector()
    collector.parser = httptools.HttpRequestParser(collector)
    try:
        collector.parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        pass
    return collector.requests


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def closes(self):
        return "close" in self.headers.get("connection", "")

    @property
    def refuses(self):
        """Whether the reader gave up here."""
        return self.status >= 400 and self.closes


def answers(data):
    """All of what a server said on one connection, to which no HEAD was sent."""
    found = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, f"half an answer: {head!r}"
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", 0))
        assert len(data) >= size, f"half a body: {data!r}"
        found.append(Answer(int(first.split(" ")[1]), headers, data[:size]))
        data = data[size:]
    return found
