import CWebSockets
import HTTP

/// Reads a request's head from lws, which keeps it only while the request is handled.
///
/// lws' parser takes a header whose name is the beginning of one that it knows for that one, and swallows the next line. So
/// what stands here may be less than the client sent: nothing of it decides where a message ends, and a connection has one
/// request only.
struct HeaderReader: RequestHead {
    let wsi: OpaquePointer
    /// Room for the longest token.
    private static let size = 16_384

    func field(_ name: String) -> String? {
        guard let token = Self.token(of: name) else { return text { roost_custom_header(wsi, name + ":", $0, $1) } }
        return text { roost_header(wsi, token, $0, $1) }
    }

    /// lws keeps the headers that it knows apart from the others.
    private static func token(of name: String) -> lws_token_indexes? {
        switch name {
        case "authorization": WSI_TOKEN_HTTP_AUTHORIZATION
        case "connection": WSI_TOKEN_CONNECTION
        case "content-length": WSI_TOKEN_HTTP_CONTENT_LENGTH
        case "content-type": WSI_TOKEN_HTTP_CONTENT_TYPE
        case "host": WSI_TOKEN_HOST
        case "origin": WSI_TOKEN_ORIGIN
        case "sec-websocket-key": WSI_TOKEN_KEY
        case "sec-websocket-version": WSI_TOKEN_VERSION
        case "transfer-encoding": WSI_TOKEN_HTTP_TRANSFER_ENCODING
        case "upgrade": WSI_TOKEN_UPGRADE
        case "x-forwarded-for": WSI_TOKEN_X_FORWARDED_FOR
        default: nil
        }
    }

    func lists(_ token: String, in name: String) -> Bool {
        guard let list = field(name) else { return false }
        return list.split(separator: ",").contains { part in
            part.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased() == token
        }
    }

    var isHTTP10: Bool { text { roost_header(wsi, WSI_TOKEN_HTTP, $0, $1) } != "HTTP/1.1" }

    var hasBody: Bool {
        field("transfer-encoding") != nil || field("content-length").map { $0 != "0" } ?? false
    }

    /// `name` without its equals sign; nil where the query has none.
    func query(_ name: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer in
            guard let base = buffer.baseAddress, roost_query_argument(wsi, name + "=", base, Int32(Self.size)) >= 0
            else {
                return nil
            }
            return String(cString: base)
        }
    }

    var allQuery: [String: String] {
        var all: [String: String] = [:]
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer in
            guard let base = buffer.baseAddress else { return }
            var index: Int32 = 0
            while lws_hdr_copy_fragment(wsi, base, Int32(Self.size), WSI_TOKEN_HTTP_URI_ARGS, index) >= 0 {
                let pair = String(cString: base).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                all[String(pair[0])] = pair.count == 2 ? String(pair[1]) : ""
                index += 1
            }
        }
        return all
    }

    var method: String { target?.method ?? "" }
    var path: String { target?.path ?? "" }

    private var target: (method: String, path: String)? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer -> (String, String)? in
            guard let base = buffer.baseAddress else { return nil }
            let method: String
            switch Int(roost_method(wsi, base, Int32(Self.size))) {
            case LWSHUMETH_GET: method = "GET"
            case LWSHUMETH_HEAD: method = "HEAD"
            case LWSHUMETH_POST: method = "POST"
            case LWSHUMETH_PUT: method = "PUT"
            case LWSHUMETH_PATCH: method = "PATCH"
            case LWSHUMETH_DELETE: method = "DELETE"
            case LWSHUMETH_OPTIONS: method = "OPTIONS"
            default: return nil
            }
            return (method, String(cString: base))
        }
    }

    private func text(_ read: (UnsafeMutablePointer<CChar>, Int32) -> Int32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer in
            guard let base = buffer.baseAddress, read(base, Int32(Self.size)) > 0 else { return nil }
            return String(cString: base)
        }
    }
}
