/// The numbers of requests. They go on over reconnects, so that an answer never fits two requests.
package struct Refs {
    private var last = 0

    package mutating func next() -> String {
        last += 1
        return String(last)
    }
}
