import Wire

/// One flat JSON object on one line, in the order written, for scripts.
struct ResultLine {
    private var bytes = Array("{".utf8)

    mutating func add(_ key: String, _ value: String) {
        begin(key)
        JSONString.encode(value, into: &bytes)
    }

    mutating func add(_ key: String, _ value: Int) {
        begin(key)
        bytes += String(value).utf8
    }

    mutating func add(_ key: String, _ value: Double, digits: Int = 1) {
        begin(key)
        // NaN is no JSON.
        bytes += (value.isFinite ? Decimal.text(value, digits: digits) : "null").utf8
    }

    var text: String { String(decoding: bytes, as: UTF8.self) + "}" }

    private mutating func begin(_ key: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        JSONString.encode(key, into: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }
}
