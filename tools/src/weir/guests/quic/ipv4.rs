// SPDX-License-Identifier: BSD-3-Clause
//! msquic opens IPv6 sockets alone and maps IPv4 addresses to them; a guest's kernel has no IPv6. These
//! stand before the C library's calls: the sockets are of IPv4, and a received packet's destination
//! (IP_PKTINFO) is handed over as IPV6_PKTINFO, the only form that msquic reads.
use libc::{c_int, c_uint, c_void, cmsghdr, in6_pktinfo, in_pktinfo, mmsghdr, msghdr};
use libc::{sockaddr, sockaddr_in, sockaddr_in6, socklen_t, ssize_t, syscall, timespec};
use libc::{AF_INET, AF_INET6, CMSG_DATA, CMSG_FIRSTHDR, CMSG_LEN, CMSG_NXTHDR, CMSG_SPACE};
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPV6_PKTINFO, IPV6_RECVPKTINFO, IP_PKTINFO};
use std::{mem::size_of, ptr};

/// Makes an IPv4 address of a mapped one, or of any, in its place.
unsafe fn plain(address: *mut c_void) {
    if !address.is_null() && c_int::from((*(address as *mut sockaddr)).sa_family) == AF_INET6 {
        let mapped = *(address as *mut sockaddr_in6);
        let own = &mut *(address as *mut sockaddr_in);
        own.sin_family = AF_INET as u16;
        own.sin_addr.s_addr = u32::from_ne_bytes(mapped.sin6_addr.s6_addr[12..].try_into().unwrap());
    }
}

/// Writes IPV6_PKTINFO in the place of IP_PKTINFO; the buffer has room for it.
unsafe fn mapped(message: &mut msghdr) {
    let (small, large) = (size_of::<in_pktinfo>() as u32, size_of::<in6_pktinfo>() as u32);
    let grown = (CMSG_SPACE(large) - CMSG_SPACE(small)) as usize;
    let mut at = CMSG_FIRSTHDR(message);
    while !at.is_null() && ((*at).cmsg_level, (*at).cmsg_type) != (IPPROTO_IP, IP_PKTINFO) {
        at = CMSG_NXTHDR(message, at);
    }
    if at.is_null() {
        return;
    }
    let info = *(CMSG_DATA(at) as *mut in_pktinfo);
    let next = (at as *mut u8).add(CMSG_SPACE(small) as usize);
    let end = (message.msg_control as *mut u8).add(message.msg_controllen);
    ptr::copy(next, next.add(grown), end.offset_from(next) as usize);
    let head = cmsghdr {
        cmsg_len: CMSG_LEN(large) as usize,
        cmsg_level: IPPROTO_IPV6,
        cmsg_type: IPV6_PKTINFO,
    };
    *at = head;
    let own = &mut *(CMSG_DATA(at) as *mut in6_pktinfo);
    own.ipi6_addr.s6_addr = std::net::Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr))
        .to_ipv6_mapped()
        .octets();
    own.ipi6_ifindex = info.ipi_ifindex as u32;
    message.msg_controllen += grown;
}

#[no_mangle]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let domain = if domain == AF_INET6 { AF_INET } else { domain };
    syscall(libc::SYS_socket, domain, kind, protocol) as c_int
}

#[no_mangle]
unsafe extern "C" fn setsockopt(
    fd: c_int, level: c_int, name: c_int, value: *const c_void, size: socklen_t,
) -> c_int {
    let (level, name) = match (level, name) {
        (IPPROTO_IPV6, IPV6_RECVPKTINFO) => (IPPROTO_IP, IP_PKTINFO),
        (IPPROTO_IPV6, _) => return 0,
        other => other,
    };
    syscall(libc::SYS_setsockopt, fd, level, name, value, size) as c_int
}

#[no_mangle]
unsafe extern "C" fn bind(fd: c_int, address: *mut c_void, size: socklen_t) -> c_int {
    plain(address);
    syscall(libc::SYS_bind, fd, address, size) as c_int
}

#[no_mangle]
unsafe extern "C" fn connect(fd: c_int, address: *mut c_void, size: socklen_t) -> c_int {
    plain(address);
    syscall(libc::SYS_connect, fd, address, size) as c_int
}

#[no_mangle]
unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    plain((*message).msg_name);
    syscall(libc::SYS_sendmsg, fd, message, flags) as ssize_t
}

#[no_mangle]
unsafe extern "C" fn sendmmsg(fd: c_int, all: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    for i in 0..count as usize {
        plain((*all.add(i)).msg_hdr.msg_name);
    }
    syscall(libc::SYS_sendmmsg, fd, all, count, flags) as c_int
}

#[no_mangle]
unsafe extern "C" fn recvmmsg(
    fd: c_int, all: *mut mmsghdr, count: c_uint, flags: c_int, wait: *mut timespec,
) -> c_int {
    let received = syscall(libc::SYS_recvmmsg, fd, all, count, flags, wait) as c_int;
    for i in 0..received.max(0) as usize {
        mapped(&mut (*all.add(i)).msg_hdr);
    }
    received
}
