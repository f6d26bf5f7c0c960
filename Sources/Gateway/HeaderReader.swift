import CWebSockets

/// Reads a request's headers from lws, which keeps them only while the request is handled.
struct HeaderReader {
    let wsi: OpaquePointer
    /// Room for the longest token.
    private static let size = 16_384

    func header(_ token: lws_token_indexes) -> String? {
        text { roost_header(wsi, token, $0, $1) }
    }

    /// `name` ends with a colon, as lws stores it.
    func header(_ name: String) -> String? {
        text { roost_custom_header(wsi, name, $0, $1) }
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

    /// All of the query.
    var query: [String: String] {
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

    var request: (method: HTTPRequest.Method, path: String)? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer -> (HTTPRequest.Method, String)? in
            guard let base = buffer.baseAddress else { return nil }
            let method: HTTPRequest.Method
            switch Int(roost_method(wsi, base, Int32(Self.size))) {
            case LWSHUMETH_GET: method = .get
            case LWSHUMETH_HEAD: method = .head
            case LWSHUMETH_POST: method = .post
            case LWSHUMETH_DELETE: method = .delete
            case LWSHUMETH_OPTIONS: method = .options
            case -1: return nil
            default: method = .other
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
