use expect_test::expect;

use super::*;

/// Even numbers, in decimal.
const EVEN: Kind = Kind::Text {
    takes: "even numbers separated by commas",
    read: |text| match text.split(',').all(|part| part.parse::<u32>().is_ok_and(|n| n % 2 == 0)) {
        true => Ok(text.trim_start_matches('0').to_owned()),
        false => Err(ValueError::new("odd").hint("make it even")),
    },
};

fn read(kind: Kind, text: &str) -> String {
    kind.read(text).map_or_else(|error| error.to_string(), |value| value.to_string())
}

#[test]
fn values_are_parsed_and_checked() {
    let theta = Kind::Number { min: 0.0, max: 10.0 };
    let answers = [
        read(Kind::Time, "1500ms"),
        read(Kind::Time, "60000ms"),
        read(Kind::Time, "1.5s"),
        read(theta, "0.99"),
        read(theta, "11"),
        read(theta, "much"),
        read(EVEN, "004,2"),
        read(EVEN, "3"),
    ];
    expect![[r#"
        1500ms
        1min
        `1.5s` is not an integer number of its unit; use a smaller unit, such as `1500ms`
        0.99
        11 is out of range; use a number from 0 to 10
        invalid value `much`; expected number, 0 to 10
        4,2
        odd"#]]
    .assert_eq(&answers.join("\n"));
    let mixed = Kind::Time.check(Value::Count(3)).unwrap_err();
    assert_eq!(mixed.message, "expected duration such as \"500ms\"");
}

#[test]
fn commas_separate_values_of_a_sweep() {
    let times = Kind::Time.read_sweep("1s, 2s").unwrap();
    assert_eq!(times, [1, 2].map(|n| Value::Time(Nanos(n * 1_000_000_000))));
    assert_eq!(EVEN.read_sweep("2,4").unwrap(), [Value::Text("2,4".into())]);
    assert_eq!(EVEN.read_sweep("2,3").unwrap_err().message, "odd");
    let words = Kind::Words(&["a", "b"]);
    assert_eq!(words.read("b,a"), words.read("a,b"), "their order has no meaning");
    assert_eq!(words.read_sweep("a,b").unwrap().len(), 1);
}

#[test]
fn sequences_may_repeat_keywords() {
    let words = &["open", "close"];
    assert_eq!(read(Kind::Sequence(words), "open,close,open"), "open,close,open");
    assert_eq!(read(Kind::Words(words), "open,close,open"), "duplicate value `open`");
    let answer = read(Kind::Sequence(words), "open,clsoe");
    assert_eq!(answer, "`clsoe` is not one of open, close");
    assert!(!Kind::Sequence(words).sweeps());
}

#[test]
fn sizes_and_amounts_of_work_are_scaled() {
    let scale = Scale::parse("1/4").unwrap();
    let time = Value::Time(Nanos(8));
    assert_eq!(Kind::Time.scaled(time.clone(), scale), time);
    let amount = |count| Kind::Amount { min: 0, max: 99 }.scaled(Value::Count(count), scale);
    assert_eq!([0, 1, 3, 40].map(amount), [0, 1, 1, 10].map(Value::Count));
    let size = Kind::Size { min: Bytes(512), scales: true };
    assert_eq!(size.scaled(Value::Size(Bytes(8192)), scale), Value::Size(Bytes(2048)));
}

#[test]
fn values_survive_serialization() {
    let values = [Value::Number(0.99), Value::Time(Nanos(5)), Value::Text("4KiB:1".into())];
    let stored = serde_json::to_string(&values).unwrap();
    expect![[r#"[{"number":0.99},{"time":5},{"text":"4KiB:1"}]"#]].assert_eq(&stored);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&stored).unwrap(), values);
}
