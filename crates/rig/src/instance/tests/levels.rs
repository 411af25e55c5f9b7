//! Instances on levels of the axis `device`.

use model::{StorageLevel, SystemSetting, Value};

use super::*;

#[test]
fn an_instance_uses_the_device_of_its_level_only() {
    let temp = place();
    let directories = ["one", "two"].map(|name| temp.path().join(name));
    for directory in &directories {
        fs::create_dir(directory).unwrap();
    }
    let level = |(name, directory): (&str, &PathBuf)| {
        let StorageKind::Image { size, count, file, allocation, .. } =
            image(Bytes::mib(64), 1).kind
        else {
            unreachable!("images were asked for")
        };
        let directory = Some(directory.display().to_string());
        let kind = StorageKind::Image { size, count, directory, file, allocation };
        StorageLevel { name: name.into(), kind }
    };
    let levels = ["a", "b"].into_iter().zip(&directories).map(level).collect();
    let kind = StorageKind::Levels { levels };
    let storage = Storage { kind, memory_limit: None, external_directory: None };
    let Some(rig) = open(temp.path(), "levels", &storage) else { return };
    let catalog = Catalog::embedded();
    let (ext4, plain) = (catalog.get("ext4").unwrap(), FilesystemLevel::plain("ext4"));
    let mut seen = Vec::new();
    for name in ["a", "b", "a"] {
        let settings = SystemSettings::from([(SystemSetting::Device, Value::Text(name.into()))]);
        let spec = InstanceSpec { settings: &settings, ..InstanceSpec::plain(ext4, &plain) };
        let mut mounted = rig.instance(&spec).unwrap();
        assert_eq!(mounted.warnings(), []);
        let watch = mounted.monitor();
        fs::write(mounted.directory().join("file"), vec![7; 8 << 20]).unwrap();
        mounted.wait_idle(Nanos(20_000_000_000)).unwrap();
        let own = watch.end().devices.into_iter().filter(|device| device.depth == 0);
        let own: Vec<_> = own.map(|device| (device.name, device.written)).collect();
        assert!(own.len() == 1 && own[0].1 >= Bytes::mib(8), "{own:?}");
        seen.push(own[0].0.clone());
        let unnamed = InstanceSpec::plain(ext4, &plain);
        assert!(matches!(rig.instance(&unnamed), Err(RigError::Busy)));
        assert_eq!(mounted.finish(true).unwrap().damage, None);
        assert!(matches!(rig.instance(&unnamed), Err(RigError::UnknownLevel { .. })));
    }
    assert!(seen[0] != seen[1] && seen[0] == seen[2], "{seen:?}");
    assert_eq!(rig.close(), []);
    for directory in &directories {
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0, "the images are removed");
    }
    assert_nothing_left(temp.path());
}

#[test]
fn images_have_the_size_of_the_instance() {
    let temp = place();
    let mut storage = image(Bytes::gib(64), 1);
    if let StorageKind::Image { allocation, .. } = &mut storage.kind {
        *allocation = Allocation::Sparse;
    }
    if !can_measure("xfs") {
        return;
    }
    let Some(rig) = open(temp.path(), "sizes", &storage) else { return };
    let catalog = Catalog::embedded();
    let (xfs, plain) = (catalog.get("xfs").unwrap(), FilesystemLevel::plain("xfs"));
    for size in [Bytes::gib(1), Bytes::gib(64), Bytes::gib(64), Bytes::gib(2)] {
        let settings = SystemSettings::from([(SystemSetting::Size, Value::Size(size))]);
        let spec = InstanceSpec { settings: &settings, ..InstanceSpec::plain(xfs, &plain) };
        let mounted = rig.instance(&spec).unwrap();
        assert_eq!(mounted.space().device_size, size);
        let available = mounted.space().available;
        assert!(available < size && available.0 > size.0 / 10 * 8, "{available} of {size}");
        assert_eq!(mounted.finish(true).unwrap().damage, None);
    }
    let small = SystemSettings::from([(SystemSetting::Size, Value::Size(Bytes::mib(8)))]);
    let spec = InstanceSpec { settings: &small, ..InstanceSpec::plain(xfs, &plain) };
    assert!(matches!(rig.instance(&spec), Err(RigError::TooSmall { .. })));
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}
