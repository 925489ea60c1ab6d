//! What other clients of ZooKeeper can do and the coordinator does not: its protocol by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A session of its own, or one that is taken over.
#[derive(Debug)]
pub(crate) struct Raw {
    stream: TcpStream,
    xid: i32,
}

impl Raw {
    /// Session 0 with any password is a new one.
    pub(crate) fn attach(server: SocketAddr, session: i64, password: &[u8; 16]) -> Self {
        let stream = TcpStream::connect(server).unwrap();
        let mut raw = Self { stream, xid: 0 };
        let mut request = vec![0; 12];
        request.extend(3000_i32.to_be_bytes());
        request.extend(session.to_be_bytes());
        request.extend(16_i32.to_be_bytes());
        request.extend(password);
        raw.send(&request);
        let answer = raw.receive();
        assert!(session == 0 || answer[8..16] == session.to_be_bytes(), "the server accepts the password");
        raw
    }

    /// Makes a persistent node that everybody has all rights to.
    pub(crate) fn create(&mut self, full: &str) {
        let mut request = 1_i32.to_be_bytes().to_vec();
        string(&mut request, full);
        string(&mut request, "");
        request.extend([0, 0, 0, 1, 0, 0, 0, 31]);
        string(&mut request, "world");
        string(&mut request, "anyone");
        request.extend(0_i32.to_be_bytes());
        let answer = self.call(&request);
        assert_eq!(answer[12..16], [0; 4], "the node is made");
    }

    pub(crate) fn close(mut self) {
        self.call(&(-11_i32).to_be_bytes());
    }

    fn call(&mut self, request: &[u8]) -> Vec<u8> {
        self.xid += 1;
        self.send(&[&self.xid.to_be_bytes(), request].concat());
        self.receive()
    }

    fn send(&mut self, body: &[u8]) {
        let length = i32::try_from(body.len()).unwrap();
        self.stream.write_all(&[&length.to_be_bytes(), body].concat()).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        body
    }
}

fn string(request: &mut Vec<u8>, text: &str) {
    request.extend(i32::try_from(text.len()).unwrap().to_be_bytes());
    request.extend(text.as_bytes());
}
