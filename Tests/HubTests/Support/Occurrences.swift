extension String {
    func occurrences(of part: String) -> Int { ranges(of: part).count }
}
