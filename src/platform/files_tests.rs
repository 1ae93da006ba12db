use super::*;

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_string();
    (folder, path)
}

/// The same steps on any file system.
fn exercise(base: &str) {
    let path = |name: &str| format!("{base}/{name}");
    create_directories(&path("d/e")).unwrap();
    create_directories(&path("d/e")).unwrap();
    assert_eq!(
        create_directory(&path("d")).unwrap_err().code(),
        Code::AlreadyExists
    );
    for name in ["a1", "a2", "b", ".h", "d/a3", "d/e/a4"] {
        write_atomically(&path(name), name.as_bytes()).unwrap();
    }
    assert_eq!(list(base).unwrap(), [".h", "a1", "a2", "b", "d"]);
    assert_eq!(read(&path("d/e/a4")).unwrap(), b"d/e/a4");
    assert_eq!(&map(&path("a1")).unwrap()[..], b"a1");
    let matching = |pattern: &str| {
        let found = matching_paths(&path(pattern)).unwrap();
        let strip = |path: String| path[base.len() + 1..].to_string();
        found.into_iter().map(strip).collect::<Vec<_>>()
    };
    assert_eq!(matching("a*"), ["a1", "a2"]);
    assert_eq!(matching("*/*"), ["d/a3", "d/e"]);
    assert_eq!(matching("d/*/a4"), ["d/e/a4"]);
    assert_eq!(matching("a1"), ["a1"]);
    assert!(matching("nope").is_empty());
    assert!(matching("nope/*").is_empty());

    let mut file = append(&path("a1")).unwrap();
    file.append(b"+more").unwrap();
    assert_eq!(file.position().unwrap(), 7);
    file.close().unwrap();
    let file = open(&path("a1")).unwrap();
    let mut bytes = [0; 4];
    file.read_exact_at(3, &mut bytes).unwrap();
    assert_eq!(&bytes, b"more");
    assert_eq!(
        file.read_exact_at(4, &mut bytes).unwrap_err().code(),
        Code::OutOfRange
    );
    assert_eq!(file.read_at(u64::MAX, &mut bytes).unwrap(), 0);

    rename(&path("a1"), &path("a2")).unwrap();
    assert_eq!(read(&path("a2")).unwrap(), b"a1+more");
    copy(&path("a2"), &path("c")).unwrap();
    assert_eq!(stat(&path("c")).unwrap().length, 7);
    assert!(is_directory(&path("d")) && !is_directory(&path("c")));
    assert_eq!(
        delete_directory(&path("d")).unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(read(&path("d")).unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(map(&path("d")).unwrap_err().code(), Code::FailedPrecondition);
    for missing in [
        read(&path("nope")).err(),
        map(&path("nope")).err(),
        stat(&path("nope")).err(),
        delete(&path("nope")).err(),
        rename(&path("nope"), &path("x")).err(),
        list(&path("nope")).err(),
        delete_recursively(&path("nope")).err(),
    ] {
        let error = missing.unwrap();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.message().ends_with("nope; No such file or directory"));
    }
    delete_recursively(&path("d")).unwrap();
    assert_eq!(list(base).unwrap(), [".h", "a2", "b", "c"]);
}

#[test]
fn local_files() {
    let (_folder, path) = folder();
    exercise(&path);
    let uri = format!("file://{path}/b");
    assert_eq!(read(&uri).unwrap(), b"b");
    let error = create(&format!("{path}/no/file")).err().unwrap();
    assert_eq!(
        error.message(),
        format!("{path}/no/file; No such file or directory")
    );
}

#[test]
fn files_in_memory() {
    exercise("ram://base");
    write_atomically("ram://deep/in/file", b"x").unwrap();
    assert_eq!(list("ram://deep").unwrap(), ["in"]);
    rename("ram://deep", "ram://other").unwrap();
    assert_eq!(read("ram://other/in/file").unwrap(), b"x");
    assert!(create("ram://other/in").is_err());
    assert!(create("ram://other/in/file/below").is_err());
}

#[test]
fn unknown_schemes() {
    let error = read("foo://x/y").unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert_eq!(
        error.message(),
        "File system scheme 'foo' not implemented (file: 'foo://x/y')"
    );
    register("test.scheme", Arc::new(MemoryFileSystem::default())).unwrap();
    assert!(register("ram", Arc::new(MemoryFileSystem::default())).is_err());
    write_atomically("test.scheme://x", b"1").unwrap();
    assert_eq!(read("test.scheme://x").unwrap(), b"1");
    assert!(rename("test.scheme://x", "ram://x").is_err());
    assert!(schemes().contains(&"test.scheme".to_string()));
}
