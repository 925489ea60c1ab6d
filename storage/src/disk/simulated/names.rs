//! The folders of a simulated disk: as they are now, as they are durable, and the changes between.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

use super::PowerCut;
use super::content::{Content, Random};

#[derive(Debug)]
pub(super) struct Names {
    dirs: HashMap<u64, Dir>,
    next_dir: u64,
}

/// The number of the folder `/`.
const ROOT: u64 = 0;

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Arc<Mutex<Content>>),
    Dir(u64),
}

#[derive(Debug, Default)]
struct Dir {
    now: BTreeMap<OsString, Node>,
    durable: BTreeMap<OsString, Node>,
    pending: Vec<Change>,
}

/// One change of a folder, which comes to the disk whole or not at all.
#[derive(Debug)]
enum Change {
    Put(OsString, Node),
    Take(OsString),
    Rename(OsString, OsString),
}

impl Default for Names {
    fn default() -> Self {
        Self { dirs: HashMap::from([(ROOT, Dir::default())]), next_dir: ROOT + 1 }
    }
}

impl Dir {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }
}

impl Change {
    fn apply(&self, entries: &mut BTreeMap<OsString, Node>) {
        match self {
            Self::Put(name, node) => {
                entries.insert(name.clone(), node.clone());
            }
            Self::Take(name) => {
                entries.remove(name);
            }
            Self::Rename(from, to) => {
                if let Some(node) = entries.remove(from) {
                    entries.insert(to.clone(), node);
                }
            }
        }
    }
}

impl Names {
    pub(super) fn find(&self, path: &Path) -> io::Result<Node> {
        let mut at = Node::Dir(ROOT);
        for component in path.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::RootDir | Component::CurDir => continue,
                Component::ParentDir | Component::Prefix(_) => return Err(ErrorKind::InvalidInput.into()),
            };
            let Node::Dir(dir) = at else { return Err(ErrorKind::NotADirectory.into()) };
            at = self.dirs.get(&dir).and_then(|d| d.now.get(name)).cloned().ok_or(ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    /// The folder that holds the name of `path`, and that name.
    fn holder<'a>(&mut self, path: &'a Path) -> io::Result<(&mut Dir, &'a OsStr)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        Ok((self.dir(parent)?, name))
    }

    fn dir(&mut self, path: &Path) -> io::Result<&mut Dir> {
        match self.find(path)? {
            Node::Dir(dir) => self.dirs.get_mut(&dir).ok_or_else(|| ErrorKind::NotFound.into()),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn create(&mut self, path: &Path, node: Node) -> io::Result<()> {
        let (dir, name) = self.holder(path)?;
        if dir.now.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        dir.change(Change::Put(name.to_owned(), node));
        Ok(())
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let above: Vec<&Path> = path.ancestors().filter(|p| p.file_name().is_some()).collect();
        for dir in above.into_iter().rev() {
            match self.find(dir) {
                Ok(Node::Dir(_)) => {}
                Ok(Node::File(_)) => return Err(ErrorKind::AlreadyExists.into()),
                Err(_) => {
                    let number = self.next_dir;
                    self.next_dir += 1;
                    self.create(dir, Node::Dir(number))?;
                    self.dirs.insert(number, Dir::default());
                }
            }
        }
        Ok(())
    }

    /// Renames, and returns the bytes of a file that had the name.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<u64> {
        let node = self.find(from)?;
        let replaced = self.find(to).ok();
        if let Some(Node::Dir(number)) = &replaced
            && self.dirs.get(number).is_some_and(|d| !d.now.is_empty())
        {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        let (Some(old), Some(new)) = (from.file_name(), to.file_name()) else { return Err(ErrorKind::InvalidInput.into()) };
        if from.parent() == to.parent() {
            self.holder(from)?.0.change(Change::Rename(old.to_owned(), new.to_owned()));
        } else {
            self.holder(to)?.0.change(Change::Put(new.to_owned(), node));
            self.holder(from)?.0.change(Change::Take(old.to_owned()));
        }
        Ok(replaced.as_ref().map_or(0, file_len))
    }

    /// Removes, and returns the bytes of the file.
    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<u64> {
        let node = self.find(path)?;
        if matches!(node, Node::Dir(_)) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let (dir, name) = self.holder(path)?;
        dir.change(Change::Take(name.to_owned()));
        Ok(file_len(&node))
    }

    /// Removes a folder, and returns the bytes of the files in it.
    pub(super) fn remove_dir_all(&mut self, path: &Path) -> io::Result<u64> {
        let entries: Vec<(OsString, Node)> = self.dir(path)?.now.iter().map(|(n, node)| (n.clone(), node.clone())).collect();
        let mut freed = 0;
        for (name, node) in entries {
            freed += match node {
                Node::File(_) => self.remove_file(&path.join(name))?,
                Node::Dir(_) => self.remove_dir_all(&path.join(name))?,
            };
        }
        let (dir, name) = self.holder(path)?;
        dir.change(Change::Take(name.to_owned()));
        Ok(freed)
    }

    /// Names, and whether each is a folder.
    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<(OsString, bool)>> {
        let Node::Dir(number) = self.find(path)? else { return Err(ErrorKind::NotADirectory.into()) };
        let dir = self.dirs.get(&number).ok_or(ErrorKind::NotFound)?;
        Ok(dir.now.iter().map(|(name, node)| (name.clone(), matches!(node, Node::Dir(_)))).collect())
    }

    pub(super) fn sync_dir(&mut self, number: u64) {
        if let Some(dir) = self.dirs.get_mut(&number) {
            dir.durable = dir.now.clone();
            dir.pending.clear();
        }
    }

    /// What is found after a power cut.
    pub(super) fn after(&self, how: PowerCut) -> Self {
        let mut random = Random(if let PowerCut::Random(seed) = how { seed } else { 0 });
        let mut found = Self { dirs: HashMap::new(), next_dir: self.next_dir };
        let mut files: HashMap<*const Mutex<Content>, Arc<Mutex<Content>>> = HashMap::new();
        let mut open = vec![ROOT];
        while let Some(number) = open.pop() {
            let Some(dir) = self.dirs.get(&number) else { continue };
            let mut entries = dir.entries_after(how, &mut random);
            for node in entries.values_mut() {
                match node {
                    Node::Dir(below) => open.push(*below),
                    Node::File(content) => {
                        let mut after = || content.lock().unwrap_or_else(PoisonError::into_inner).after(how, &mut random);
                        let after =
                            Arc::clone(files.entry(Arc::as_ptr(content)).or_insert_with(|| Arc::new(Mutex::new(after()))));
                        *content = after;
                    }
                }
            }
            found.dirs.insert(number, Dir { now: entries.clone(), durable: entries, pending: Vec::new() });
        }
        found
    }
}

impl Dir {
    fn entries_after(&self, how: PowerCut, random: &mut Random) -> BTreeMap<OsString, Node> {
        match how {
            PowerCut::KeepAll => self.now.clone(),
            PowerCut::LoseUnsynced => self.durable.clone(),
            PowerCut::Random(_) => {
                let mut entries = self.durable.clone();
                let kept = random.below(self.pending.len() as u64 + 1);
                (0..kept).zip(&self.pending).for_each(|(_, change)| change.apply(&mut entries));
                entries
            }
        }
    }
}

fn file_len(node: &Node) -> u64 {
    match node {
        Node::File(content) => content.lock().unwrap_or_else(PoisonError::into_inner).len(),
        Node::Dir(_) => 0,
    }
}
