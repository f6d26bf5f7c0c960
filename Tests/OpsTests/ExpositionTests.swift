import Hub
import Ops
import Testing

@Suite("Prometheus' text")
struct ExpositionTests {
    @Test func figuresOfOneNameHaveOneHead() {
        let text = Exposition.text(of: [
            Figure("roost_a", .gauge, "A.", 1.5),
            Figure("roost_b_total", .counter, "B.", 2, label: "reason=\"x\""),
            Figure("roost_b_total", .counter, "B.", 3, label: "reason=\"y\""),
        ])
        #expect(
            text == """
                # HELP roost_a A.
                # TYPE roost_a gauge
                roost_a 1.5
                # HELP roost_b_total B.
                # TYPE roost_b_total counter
                roost_b_total{reason="x"} 2
                roost_b_total{reason="y"} 3

                """)
    }

    @Test func bucketsOfAHistogramAreCumulativeAndInSeconds() {
        var histogram = Histogram.ofTurns
        for nanoseconds in [Int64(40_000), 90_000, 2_000_000_000] { histogram.recordDuration(nanoseconds: nanoseconds) }
        let lines = Exposition.text(of: [Figure("roost_t_seconds", "T.", histogram)]).split(separator: "\n")
        #expect(lines[1] == "# TYPE roost_t_seconds histogram")
        #expect(lines[2] == #"roost_t_seconds_bucket{le="5e-05"} 1"#)
        #expect(lines[3] == #"roost_t_seconds_bucket{le="0.0001"} 2"#)
        #expect(lines.dropLast(2).last == #"roost_t_seconds_bucket{le="+Inf"} 3"#)
        #expect(lines.dropLast().last == "roost_t_seconds_sum 2.00013")
        #expect(lines.last == "roost_t_seconds_count 3")
    }

    @Test func labelsAreEscaped() {
        let figures = Figure.labelledFigures("roost_x_total", .counter, "X.", "result", [#"a"b\c"# + "\n": 1])
        #expect(Exposition.text(of: figures).hasSuffix(#"roost_x_total{result="a\"b\\c\n"} 1"# + "\n"))
    }
}
