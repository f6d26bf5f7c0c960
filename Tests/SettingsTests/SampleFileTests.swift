import Foundation
import Settings
import Testing

/// `config/roost.yaml` is the manual; these tests keep it true.
@Suite("The sample file")
struct SampleFileTests {
    @Test("changes nothing: every value is the default")
    func equalsTheDefaults() throws {
        let sample = try RoostConfiguration.load(file: Sample.path, environment: [:])
        for value in sample.values {
            #expect(value.value == value.setting.standard, "\(value.setting.key)")
        }
    }

    @Test("has every setting, with a default in force and without one commented out")
    func hasEverySetting() throws {
        let sample = try Sample()
        for setting in Setting.all {
            let entry = try #require(sample.entries[setting.key], "\(setting.key) is not in the sample")
            #expect(entry.isCommentedOut == (setting.standard == nil), "\(setting.key)")
        }
    }

    @Test("has no setting that is not in the table")
    func hasNoUnknownSetting() throws {
        let known = Set(Setting.all.map(\.key))
        #expect(try Sample().entries.keys.filter { !known.contains($0) } == [])
    }

    @Test("tells of each what the table tells: note, unit, range, variable", arguments: Setting.all.map(\.key))
    func tellsWhatTheTableTells(key: String) throws {
        let setting = try #require(Setting.all.first { $0.key == key })
        let comment = try #require(try Sample().entries[key]).comment
        #expect(comment.contains(setting.note))
        if let unit = setting.unit { #expect(comment.contains(" \(unit)")) }
        #expect(comment.hasSuffix(setting.environmentName))
        #expect(comment.hasSuffix("Reloaded. " + setting.environmentName) == setting.isReloaded)
        if case .integer(let range) = setting.kind {
            #expect(comment.contains("\(range.lowerBound) to \(range.upperBound)"))
        }
    }
}
