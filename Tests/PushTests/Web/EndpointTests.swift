import Glibc
import Testing

@testable import Push

struct EndpointTests {
    /// URLs that a browser might say, and that the hub never posts to, each with a piece of the sentence that says why.
    private static let hostile = [
        ("http://push.example.com/1", "https://"), ("HTTPS://push.example.com/1", "https://"),
        ("ftp://push.example.com/1", "https://"),
        ("file:///etc/passwd", "https://"), ("gopher://push.example.com/1", "https://"),
        ("//push.example.com/1", "https://"), ("", "https://"),
        ("https://127.0.0.1/1", "this machine"), ("https://127.1.2.3/1", "this machine"),
        ("https://0.0.0.0/1", "this machine"),
        ("https://127.1/1", "no name"), ("https://2130706433/1", "no name"), ("https://0x7f000001/1", "no name"),
        ("https://0x7f.1/1", "no name"), ("https://0177.0.0.1/1", "no name"), ("https://1.2.3.0x4/1", "no name"),
        ("https://10.0.0.1/1", "private"), ("https://172.16.0.1/1", "private"), ("https://172.31.255.255/1", "private"),
        ("https://192.168.1.1/1", "private"), ("https://100.64.0.1/1", "provider"),
        ("https://169.254.169.254/latest/meta-data", "metadata"),
        ("https://224.0.0.1/1", "multicast"), ("https://255.255.255.255/1", "reserved"),
        ("https://198.18.0.1/1", "measurements"),
        ("https://8.8.8.8/1", "an address and no name"), ("https://[::1]/1", "this machine"),
        ("https://[::]/1", "this machine"),
        ("https://[::ffff:127.0.0.1]/1", "version 4"), ("https://[::ffff:8.8.8.8]/1", "version 4"),
        ("https://[64:ff9b::7f00:1]/1", "NAT64"),
        ("https://[2002:7f00:1::]/1", "6to4"), ("https://[fe80::1]/1", "link-local"),
        ("https://[fe80::1%25eth0]/1", "no name"),
        ("https://[fc00::1]/1", "private"), ("https://[fd00:ec2::254]/1", "private"),
        ("https://[ff02::1]/1", "multicast"),
        ("https://[2001:db8::1]/1", "documentation"), ("https://[2606:4700::1111]/1", "an address and no name"),
        ("https://[4000::1]/1", "nobody was given"), ("https://localhost/1", "no name"),
        ("https://a.localhost/1", "no name"),
        ("https://metadata/1", "no name"), ("https://metadata.google.internal/1", "no name"),
        ("https://printer.local/1", "no name"),
        ("https://push.example.com./1", "no name"), ("https://push..example.com/1", "no name"),
        ("https://push.example.com:22/1", "443"), ("https://push.Example.com/1", "no name"),
        ("https://push.example.com:443/1", "443"),
        ("https://push.example.com:8443/1", "443"), ("https://push.example.com:/1", "443"),
        ("https://push.example.com:0/1", "443"),
        ("https://push.example.com:99999/1", "443"), ("https://user@push.example.com/1", "user"),
        ("https://user:secret@push.example.com/1", "user"), ("https://push.example.com@127.0.0.1/1", "user"),
        ("https://push.example.com", "path"), ("https://push.example.com/", "path"),
        ("https://push.example.com?1", "path"),
        ("https://push.example.com/1#2", "path"), ("https://push.example.com\\@127.0.0.1/1", "characters"),
        ("https://push.example.com/1\r\nhost: 127.0.0.1", "characters"), ("https://push.example.com/1 2", "characters"),
        ("https://push.example.com/\u{0}", "characters"), ("https://pu%73h.example.com/1", "no name"),
        ("https://püsh.example.com/1", "characters"), ("https://127.0.0.1。/1", "characters"),
        ("https:///1", "no name"), ("https://" + String(repeating: "a", count: 64) + ".com/1", "no name"),
        ("https://push.example.com/" + String(repeating: "1", count: 2048), "bytes"),
    ]

    @Test func hostileURLsAreRefusedWithASentence() {
        #expect(Self.hostile.count >= 30)
        for (url, words) in Self.hostile {
            do {
                _ = try PushEndpoint(url, under: EndpointRules())
                Issue.record("\(url) is taken")
            } catch {
                #expect(error.description.contains(words), "\(url): \(error)")
                #expect(error.description.hasSuffix("."))
            }
        }
    }

    /// Those that browsers have: of Chrome, Firefox, Edge and Safari.
    @Test(arguments: [
        ("https://fcm.googleapis.com/fcm/send/dJj:APA91b_-x", "https://fcm.googleapis.com"),
        ("https://updates.push.services.mozilla.com/wpush/v2/gAAAA", "https://updates.push.services.mozilla.com"),
        ("https://wns2-by3p.notify.windows.com/w/?token=BQYA%2f", "https://wns2-by3p.notify.windows.com"),
        ("https://web.push.apple.com/QGuQyavXutnMH", "https://web.push.apple.com"),
    ])
    func endpointsOfBrowsersAreTaken(_ url: String, _ origin: String) throws {
        let endpoint = try PushEndpoint(url, under: EndpointRules())
        #expect(endpoint.origin.text == origin)
        #expect(url.hasSuffix(endpoint.path))
    }

    @Test func ownNetworksAreTakenOnAnyPort() throws {
        let networks = try ["127.0.0.0/8", "fd00::/8"].map { try #require(NetworkRange($0)) }
        let rules = EndpointRules(networks: networks)
        #expect(try PushEndpoint("https://127.0.0.1:8443/1", under: rules).origin.text == "https://127.0.0.1:8443")
        #expect(try PushEndpoint("https://[fd00::1]/1", under: rules).origin.text == "https://[fd00::1]")
        #expect(try PushEndpoint("https://ntfy:8443/1", under: rules).origin.text == "https://ntfy:8443")
        #expect(throws: EndpointError.self) { try PushEndpoint("https://10.0.0.1/1", under: rules) }
        #expect(throws: EndpointError.self) { try PushEndpoint("https://[::ffff:127.0.0.1]/1", under: rules) }
    }

    /// What a name leads to is judged by the address that is connected to.
    @Test func connectionsAreJudgedByTheirAddress() throws {
        let open = EndpointRules()
        let own = EndpointRules(networks: [try #require(NetworkRange("127.0.0.0/8"))])
        for address in [
            "127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00:ec2::254",
        ] {
            #expect(problem(address, 443, open) != nil, "\(address)")
        }
        #expect(problem("8.8.8.8", 443, open) == nil)
        #expect(problem("2606:4700::1111", 443, open) == nil)
        #expect(problem("8.8.8.8", 80, open) == "port 80")
        #expect(problem("8.8.8.8", 8443, own) == "port 8443")
        #expect(problem("127.0.0.1", 8443, own) == nil)
        #expect(problem("10.0.0.1", 443, own) != nil)
    }

    private func problem(_ text: String, _ port: UInt16, _ rules: EndpointRules) -> String? {
        var four = sockaddr_in()
        four.sin_family = sa_family_t(AF_INET)
        four.sin_port = port.bigEndian
        if inet_pton(AF_INET, text, &four.sin_addr) == 1 {
            return withUnsafeBytes(of: four) { rules.problem(withConnectingTo: $0) }
        }
        var six = sockaddr_in6()
        six.sin6_family = sa_family_t(AF_INET6)
        six.sin6_port = port.bigEndian
        inet_pton(AF_INET6, text, &six.sin6_addr)
        return withUnsafeBytes(of: six) { rules.problem(withConnectingTo: $0) }
    }
}
