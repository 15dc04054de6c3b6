use partita_store::*;
use partita_store_rocksdb::*;
use std::sync::Arc;
use std::time::*;
fn b(p: u32, items: Vec<Item>) -> Batch {
    Batch { space: Space(1), partition: p.to_be_bytes().to_vec(), items, drop_space: None }
}
fn val(seed: u32) -> Vec<u8> {
    let mut s = seed | 1;
    (0..1000)
        .map(|i| {
            if i % 2 == 0 {
                s = s.wrapping_mul(1664525).wrapping_add(1013904223);
            }
            (s >> 24) as u8 & 0x3f
        })
        .collect()
}
fn main() {
    let n: u32 = std::env::args().nth(1).map(|s| s.parse().unwrap()).unwrap_or(200_000);
    let base = std::path::PathBuf::from(std::env::args().nth(2).unwrap_or("/tmp/scratch-rocks".into()));
    let _ = std::fs::remove_dir_all(&base);
    for i in 0..8 {
        let d = base.join(format!("e{i}"));
        let t = Instant::now();
        let s = RocksStore::open(&d, Options::default()).unwrap();
        let o = t.elapsed();
        let t = Instant::now();
        drop(s);
        let c = t.elapsed();
        let t = Instant::now();
        let s = RocksStore::open(&d, Options::default()).unwrap();
        println!("open {o:?} close {c:?} reopen {:?}", t.elapsed());
        drop(s);
    }
    let rss = || {
        let s = std::fs::read_to_string("/proc/self/status").unwrap();
        s.lines().find(|l| l.starts_with("VmRSS")).unwrap().to_string()
    };
    println!("{}", rss());
    let d = base.join("main");
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Arc::new(RocksStore::open(&d, Options { cache_bytes: 512 << 20, ..Options::default() }).unwrap());
    println!("idle {}", rss());
    let run = |name: &str,
               tasks: u32,
               per: u32,
               f: Arc<
        dyn Fn(Arc<RocksStore>, u32, u32) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync,
    >| {
        let t = Instant::now();
        rt.block_on(async {
            let hs: Vec<_> = (0..tasks)
                .map(|k| {
                    let s = store.clone();
                    let f = f.clone();
                    tokio::spawn(async move {
                        for i in 0..per {
                            f(s.clone(), k, i).await
                        }
                    })
                })
                .collect();
            for h in hs {
                h.await.unwrap()
            }
        });
        let e = t.elapsed();
        println!("{name}: {:.0}/s ({e:?})", (tasks * per) as f64 / e.as_secs_f64());
    };
    let per = n / 64;
    run(
        "insert absent 64 tasks",
        64,
        per,
        Arc::new(move |s, k, i| {
            Box::pin(async move {
                let id = (k * per + i).wrapping_mul(2654435761) % (n * 4);
                s.commit(b(
                    id % 1000,
                    vec![Item {
                        row: (k * per + i).to_be_bytes().to_vec(),
                        expect: Expect::Absent,
                        action: Action::Put(val(id).into()),
                    }],
                ))
                .await
                .unwrap();
            })
        }),
    );
    println!("{:?}", store.figures());
    run(
        "upsert any 64 tasks",
        64,
        per / 4,
        Arc::new(move |s, k, i| {
            Box::pin(async move {
                let id = k * per + i;
                s.commit(b(
                    5000 + id % 1000,
                    vec![Item {
                        row: id.to_be_bytes().to_vec(),
                        expect: Expect::Any,
                        action: Action::Put(val(id).into()),
                    }],
                ))
                .await
                .unwrap();
            })
        }),
    );
    run(
        "cond update 64 tasks",
        64,
        per / 4,
        Arc::new(move |s, k, i| {
            Box::pin(async move {
                let x = k * per + (i * 7919) % per;
                let id = x.wrapping_mul(2654435761) % (n * 4);
                let p = (id % 1000).to_be_bytes();
                let r = s.get(Space(1), &p, &x.to_be_bytes()).await.unwrap().unwrap();
                s.commit(b(
                    id % 1000,
                    vec![Item {
                        row: x.to_be_bytes().to_vec(),
                        expect: Expect::Version(r.version),
                        action: Action::Put(val(id).into()),
                    }],
                ))
                .await
                .unwrap();
            })
        }),
    );
    run(
        "cond update 1 task",
        1,
        2000,
        Arc::new(move |s, k, i| {
            Box::pin(async move {
                let x = k * per + (i * 7919) % per;
                let id = x.wrapping_mul(2654435761) % (n * 4);
                let p = (id % 1000).to_be_bytes();
                let r = s.get(Space(1), &p, &x.to_be_bytes()).await.unwrap().unwrap();
                s.commit(b(
                    id % 1000,
                    vec![Item {
                        row: x.to_be_bytes().to_vec(),
                        expect: Expect::Version(r.version),
                        action: Action::Put(val(id).into()),
                    }],
                ))
                .await
                .unwrap();
            })
        }),
    );
    for tasks in [1, 2, 1, 2, 1, 2, 4] {
        run(
            &format!("get {tasks} tasks"),
            tasks,
            n / 2,
            Arc::new(move |s, k, i| {
                Box::pin(async move {
                    let x = (k * 77 + i.wrapping_mul(40503)) % (per * 64);
                    let id = x.wrapping_mul(2654435761) % (n * 4);
                    let p = (id % 1000).to_be_bytes();
                    s.get(Space(1), &p, &x.to_be_bytes()).await.unwrap().unwrap();
                })
            }),
        );
    }
    for hint in [100usize, 101] {
        run(
            &format!("scan 20 rows, hint {hint}, 8 tasks"),
            8,
            4000,
            Arc::new(move |s, k, i| {
                Box::pin(async move {
                    let mut c = 0;
                    s.scan(
                        Scan {
                            space: Space(1),
                            start: Position::new(((k * 131 + i) % 1000).to_be_bytes(), []),
                            end: None,
                            deadline: Instant::now() + Duration::from_secs(5),
                            rows_hint: hint,
                        },
                        &mut |_| {
                            c += 1;
                            if c == 20 { Step::Stop } else { Step::Next }
                        },
                    )
                    .await
                    .unwrap();
                })
            }),
        );
    }
    for _ in 0..3 {
        let t = Instant::now();
        let mut rows = 0u64;
        let mut bytes = 0;
        rt.block_on(store.scan(
            Scan {
                space: Space(1),
                start: Position::default(),
                end: None,
                deadline: Instant::now() + Duration::from_secs(500),
                rows_hint: 1000000,
            },
            &mut |r| {
                rows += 1;
                bytes += r.value.len();
                Step::Next
            },
        ))
        .unwrap();
        println!("full scan {:.0} rows/s {bytes}", rows as f64 / t.elapsed().as_secs_f64());
    }
    println!("{:?}\n{}", store.figures(), rss());
    for e in std::fs::read_dir(&d).unwrap() {
        let e = e.unwrap();
        print!("{:?}:{} ", e.file_name(), e.metadata().unwrap().len());
    }
    println!();
    let t = Instant::now();
    drop(store);
    println!("close {:?}", t.elapsed());
    let t = Instant::now();
    let store = RocksStore::open(&d, Options::default()).unwrap();
    println!("reopen {:?}", t.elapsed());
    let t = Instant::now();
    rt.block_on(store.commit(Batch { space: Space(0), partition: vec![], items: vec![], drop_space: Some(Space(1)) }))
        .unwrap();
    println!("drop {:?}", t.elapsed());
    while store.figures().iter().any(|f| f.0 == "reclaims_pending" && f.1 > 0) {
        std::thread::yield_now()
    }
    println!("reclaimed {:?} {:?}", t.elapsed(), store.figures());
    drop(store);
    for e in std::fs::read_dir(&d).unwrap() {
        let e = e.unwrap();
        print!("{:?}:{} ", e.file_name(), e.metadata().unwrap().len());
    }
    println!();
    let _ = std::fs::remove_dir_all(&base);
}
