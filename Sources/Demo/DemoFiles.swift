import CDemoFiles

/// The embedded files by their names.
enum DemoFiles {
    static let all: [String: [UInt8]] = {
        var count = 0
        let files = UnsafeBufferPointer(start: roost_demo_files(&count), count: count)
        return Dictionary(
            uniqueKeysWithValues: files.map { file in
                (String(cString: file.name), Array(UnsafeBufferPointer(start: file.bytes, count: file.length)))
            })
    }()
}
