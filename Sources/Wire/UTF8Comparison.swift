/// Texts compared by their bytes, as clients and Postgres compare them: to Swift strings that look alike are equal.
///
/// The iterators of Swift's strings take some nanoseconds for a byte, and these comparisons are made for every member of
/// every frame.
extension String {
    package func hasSameBytes(as other: String) -> Bool {
        other.utf8.withContiguousStorageIfAvailable(hasBytes) ?? utf8.elementsEqual(other.utf8)
    }

    package func hasSameBytes(as other: ArraySlice<UInt8>) -> Bool {
        other.withUnsafeBufferPointer(hasBytes)
    }

    private func hasBytes(_ others: UnsafeBufferPointer<UInt8>) -> Bool {
        utf8.withContiguousStorageIfAvailable { mine in
            guard mine.count == others.count else { return false }
            // Topics and ids begin alike, so they are told apart sooner from the end.
            var at = mine.count
            while at > 0 {
                at -= 1
                if mine[at] != others[at] { return false }
            }
            return true
        } ?? utf8.elementsEqual(others)
    }
}
