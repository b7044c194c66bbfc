/* SPDX-License-Identifier: MIT */
/*
 * Keys: a matrix of what is offered, what is answered and what then holds.
 *
 * Invariants:
 * 1. A row names everything that differs from the standard values: an untold change fails it.
 *
 * Not here: texts in PDUs (test_login.c, test_text.c), how numbers are written (test_value.c).
 */
#include "target/iscsi/keys.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N ISCSI_SESSION_NORMAL
#define D ISCSI_SESSION_DISCOVERY
#define SEC ISCSI_PHASE_SECURITY
#define OP ISCSI_PHASE_OPERATIONAL
#define FFP ISCSI_PHASE_FULL_FEATURE
#define OK ISCSI_KEY_OK
#define AUTH ISCSI_KEY_AUTH
#define DISCOVER ISCSI_KEY_DISCOVER
#define PROTOCOL ISCSI_KEY_PROTOCOL
#define BAD_NAME ISCSI_KEY_BAD_NAME
#define BAD_TYPE ISCSI_KEY_BAD_TYPE

/*
 * `|` stands for NUL. An answer of NULL is not looked at: the negotiation has failed. The last
 * column is what differs from the standard values, in the order of iscsi_params.
 */
static const struct row {
	enum iscsi_session_type type;
	enum iscsi_phase phase;
	const char *offer;
	enum iscsi_key_verdict verdict;
	const char *answer, *changed;
} rows[] = {
	{ N, OP, "HeaderDigest=None", OK, "HeaderDigest=None", "" },
	{ N, OP, "HeaderDigest=CRC32C", OK, "HeaderDigest=CRC32C", "header_digest=1" },
	{ N, OP, "HeaderDigest=CRC32C,None", OK, "HeaderDigest=CRC32C", "header_digest=1" },
	{ N, OP, "HeaderDigest=None,CRC32C", OK, "HeaderDigest=None", "" },
	{ N, OP, "HeaderDigest=SHA,CRC32C", OK, "HeaderDigest=CRC32C", "header_digest=1" },
	{ N, OP, "HeaderDigest=SHA", OK, "HeaderDigest=Reject", "" },
	{ N, OP, "HeaderDigest=crc32c", OK, "HeaderDigest=Reject", "" },
	{ N, OP, "HeaderDigest=CRC32C ", OK, "HeaderDigest=Reject", "" },
	{ N, OP, "HeaderDigest=", OK, "HeaderDigest=Reject", "" },
	{ N, OP, "HeaderDigest=,,None", OK, "HeaderDigest=None", "" },
	{ N, OP, "DataDigest=None", OK, "DataDigest=None", "" },
	{ N, OP, "DataDigest=CRC32C", OK, "DataDigest=CRC32C", "data_digest=1" },
	{ N, OP, "DataDigest=CRC32C,None", OK, "DataDigest=CRC32C", "data_digest=1" },
	{ N, OP, "DataDigest=None,CRC32C", OK, "DataDigest=None", "" },
	{ N, OP, "DataDigest=SHA,CRC32C", OK, "DataDigest=CRC32C", "data_digest=1" },
	{ N, OP, "DataDigest=SHA", OK, "DataDigest=Reject", "" },
	{ N, OP, "DataDigest=,,None", OK, "DataDigest=None", "" },
	{ N, OP, "InitialR2T=Yes", OK, "InitialR2T=Yes", "" },
	{ N, OP, "InitialR2T=No", OK, "InitialR2T=No", "initial_r2t=0" },
	{ N, OP, "InitialR2T=yes", OK, "InitialR2T=Reject", "" },
	{ N, OP, "InitialR2T=NO", OK, "InitialR2T=Reject", "" },
	{ N, OP, "InitialR2T=1", OK, "InitialR2T=Reject", "" },
	{ N, OP, "InitialR2T=", OK, "InitialR2T=Reject", "" },
	{ N, OP, "InitialR2T=Yes,No", OK, "InitialR2T=Reject", "" },
	{ N, OP, "InitialR2T=Y", OK, "InitialR2T=Reject", "" },
	{ N, OP, "ImmediateData=Yes", OK, "ImmediateData=Yes", "" },
	{ N, OP, "ImmediateData=No", OK, "ImmediateData=No", "immediate_data=0" },
	{ N, OP, "ImmediateData=", OK, "ImmediateData=Reject", "" },
	{ N, OP, "DataPDUInOrder=Yes", OK, "DataPDUInOrder=Yes", "" },
	{ N, OP, "DataPDUInOrder=No", OK, "DataPDUInOrder=Yes", "" },
	{ N, OP, "DataPDUInOrder=", OK, "DataPDUInOrder=Reject", "" },
	{ N, OP, "DataSequenceInOrder=Yes", OK, "DataSequenceInOrder=Yes", "" },
	{ N, OP, "DataSequenceInOrder=No", OK, "DataSequenceInOrder=Yes", "" },
	{ N, OP, "DataSequenceInOrder=", OK, "DataSequenceInOrder=Reject", "" },
	{ N, OP, "MaxConnections=1", OK, "MaxConnections=1", "" },
	{ N, OP, "MaxConnections=2", OK, "MaxConnections=1", "" },
	{ N, OP, "MaxConnections=65534", OK, "MaxConnections=1", "" },
	{ N, OP, "MaxConnections=65535", OK, "MaxConnections=1", "" },
	{ N, OP, "MaxConnections=0xffff", OK, "MaxConnections=1", "" },
	{ N, OP, "MaxConnections=65536", OK, "MaxConnections=Reject", "" },
	{ N, OP, "MaxConnections=", OK, "MaxConnections=Reject", "" },
	{ N, OP, "MaxConnections=-1", OK, "MaxConnections=Reject", "" },
	{ N, OP, "MaxConnections=065535", OK, "MaxConnections=Reject", "" },
	{ N, OP, "MaxConnections=0x", OK, "MaxConnections=Reject", "" },
	{ N, OP, "MaxConnections=18446744073709551616", OK, "MaxConnections=Reject", "" },
	{ N, OP, "MaxConnections=0", OK, "MaxConnections=Reject", "" },
	{ N, OP, "MaxBurstLength=512", OK, "MaxBurstLength=512", "max_burst=512" },
	{ N, OP, "MaxBurstLength=513", OK, "MaxBurstLength=513", "max_burst=513" },
	{ N, OP, "MaxBurstLength=262144", OK, "MaxBurstLength=262144", "" },
	{ N, OP, "MaxBurstLength=1048575", OK, "MaxBurstLength=1048575", "max_burst=1048575" },
	{ N, OP, "MaxBurstLength=1048576", OK, "MaxBurstLength=1048576", "max_burst=1048576" },
	{ N, OP, "MaxBurstLength=1048577", OK, "MaxBurstLength=1048576", "max_burst=1048576" },
	{ N, OP, "MaxBurstLength=16777214", OK, "MaxBurstLength=1048576", "max_burst=1048576" },
	{ N, OP, "MaxBurstLength=16777215", OK, "MaxBurstLength=1048576", "max_burst=1048576" },
	{ N, OP, "MaxBurstLength=0xffffff", OK, "MaxBurstLength=1048576", "max_burst=1048576" },
	{ N, OP, "MaxBurstLength=16777216", OK, "MaxBurstLength=Reject", "" },
	{ N, OP, "MaxBurstLength=", OK, "MaxBurstLength=Reject", "" },
	{ N, OP, "MaxBurstLength=-1", OK, "MaxBurstLength=Reject", "" },
	{ N, OP, "MaxBurstLength=016777215", OK, "MaxBurstLength=Reject", "" },
	{ N, OP, "MaxBurstLength=0x", OK, "MaxBurstLength=Reject", "" },
	{ N, OP, "MaxBurstLength=18446744073709551616", OK, "MaxBurstLength=Reject", "" },
	{ N, OP, "MaxBurstLength=511", OK, "MaxBurstLength=Reject", "" },
	{ N, OP, "FirstBurstLength=512", OK, "FirstBurstLength=512", "first_burst=512" },
	{ N, OP, "FirstBurstLength=513", OK, "FirstBurstLength=513", "first_burst=513" },
	{ N, OP, "FirstBurstLength=65536", OK, "FirstBurstLength=65536", "" },
	{ N, OP, "FirstBurstLength=262143", OK, "FirstBurstLength=262143", "first_burst=262143" },
	{ N, OP, "FirstBurstLength=262144", OK, "FirstBurstLength=262144", "first_burst=262144" },
	{ N, OP, "FirstBurstLength=262145", OK, "FirstBurstLength=262144", "first_burst=262144" },
	{ N, OP, "FirstBurstLength=16777214", OK, "FirstBurstLength=262144", "first_burst=262144" },
	{ N, OP, "FirstBurstLength=16777215", OK, "FirstBurstLength=262144", "first_burst=262144" },
	{ N, OP, "FirstBurstLength=0xffffff", OK, "FirstBurstLength=262144", "first_burst=262144" },
	{ N, OP, "FirstBurstLength=16777216", OK, "FirstBurstLength=Reject", "" },
	{ N, OP, "FirstBurstLength=", OK, "FirstBurstLength=Reject", "" },
	{ N, OP, "FirstBurstLength=-1", OK, "FirstBurstLength=Reject", "" },
	{ N, OP, "FirstBurstLength=016777215", OK, "FirstBurstLength=Reject", "" },
	{ N, OP, "FirstBurstLength=0x", OK, "FirstBurstLength=Reject", "" },
	{ N, OP, "FirstBurstLength=18446744073709551616", OK, "FirstBurstLength=Reject", "" },
	{ N, OP, "FirstBurstLength=511", OK, "FirstBurstLength=Reject", "" },
	{ N, OP, "MaxOutstandingR2T=1", OK, "MaxOutstandingR2T=1", "" },
	{ N, OP, "MaxOutstandingR2T=2", OK, "MaxOutstandingR2T=2", "max_outstanding_r2t=2" },
	{ N, OP, "MaxOutstandingR2T=15", OK, "MaxOutstandingR2T=15", "max_outstanding_r2t=15" },
	{ N, OP, "MaxOutstandingR2T=16", OK, "MaxOutstandingR2T=16", "max_outstanding_r2t=16" },
	{ N, OP, "MaxOutstandingR2T=17", OK, "MaxOutstandingR2T=16", "max_outstanding_r2t=16" },
	{ N, OP, "MaxOutstandingR2T=65534", OK, "MaxOutstandingR2T=16", "max_outstanding_r2t=16" },
	{ N, OP, "MaxOutstandingR2T=65535", OK, "MaxOutstandingR2T=16", "max_outstanding_r2t=16" },
	{ N, OP, "MaxOutstandingR2T=0xffff", OK, "MaxOutstandingR2T=16", "max_outstanding_r2t=16" },
	{ N, OP, "MaxOutstandingR2T=65536", OK, "MaxOutstandingR2T=Reject", "" },
	{ N, OP, "MaxOutstandingR2T=", OK, "MaxOutstandingR2T=Reject", "" },
	{ N, OP, "MaxOutstandingR2T=-1", OK, "MaxOutstandingR2T=Reject", "" },
	{ N, OP, "MaxOutstandingR2T=065535", OK, "MaxOutstandingR2T=Reject", "" },
	{ N, OP, "MaxOutstandingR2T=0x", OK, "MaxOutstandingR2T=Reject", "" },
	{ N, OP, "MaxOutstandingR2T=18446744073709551616", OK, "MaxOutstandingR2T=Reject", "" },
	{ N, OP, "MaxOutstandingR2T=0", OK, "MaxOutstandingR2T=Reject", "" },
	{ N, OP, "DefaultTime2Wait=0", OK, "DefaultTime2Wait=0", "time2wait_s=0" },
	{ N, OP, "DefaultTime2Wait=1", OK, "DefaultTime2Wait=1", "time2wait_s=1" },
	{ N, OP, "DefaultTime2Wait=2", OK, "DefaultTime2Wait=2", "" },
	{ N, OP, "DefaultTime2Wait=3599", OK, "DefaultTime2Wait=3599", "time2wait_s=3599" },
	{ N, OP, "DefaultTime2Wait=3600", OK, "DefaultTime2Wait=3600", "time2wait_s=3600" },
	{ N, OP, "DefaultTime2Wait=0xe10", OK, "DefaultTime2Wait=3600", "time2wait_s=3600" },
	{ N, OP, "DefaultTime2Wait=3601", OK, "DefaultTime2Wait=Reject", "" },
	{ N, OP, "DefaultTime2Wait=", OK, "DefaultTime2Wait=Reject", "" },
	{ N, OP, "DefaultTime2Wait=-1", OK, "DefaultTime2Wait=Reject", "" },
	{ N, OP, "DefaultTime2Wait=03600", OK, "DefaultTime2Wait=Reject", "" },
	{ N, OP, "DefaultTime2Wait=0x", OK, "DefaultTime2Wait=Reject", "" },
	{ N, OP, "DefaultTime2Wait=18446744073709551616", OK, "DefaultTime2Wait=Reject", "" },
	{ N, OP, "DefaultTime2Retain=0", OK, "DefaultTime2Retain=0", "time2retain_s=0" },
	{ N, OP, "DefaultTime2Retain=1", OK, "DefaultTime2Retain=0", "time2retain_s=0" },
	{ N, OP, "DefaultTime2Retain=20", OK, "DefaultTime2Retain=0", "time2retain_s=0" },
	{ N, OP, "DefaultTime2Retain=3599", OK, "DefaultTime2Retain=0", "time2retain_s=0" },
	{ N, OP, "DefaultTime2Retain=3600", OK, "DefaultTime2Retain=0", "time2retain_s=0" },
	{ N, OP, "DefaultTime2Retain=0xe10", OK, "DefaultTime2Retain=0", "time2retain_s=0" },
	{ N, OP, "DefaultTime2Retain=3601", OK, "DefaultTime2Retain=Reject", "" },
	{ N, OP, "DefaultTime2Retain=", OK, "DefaultTime2Retain=Reject", "" },
	{ N, OP, "DefaultTime2Retain=-1", OK, "DefaultTime2Retain=Reject", "" },
	{ N, OP, "DefaultTime2Retain=03600", OK, "DefaultTime2Retain=Reject", "" },
	{ N, OP, "DefaultTime2Retain=0x", OK, "DefaultTime2Retain=Reject", "" },
	{ N, OP, "DefaultTime2Retain=18446744073709551616", OK, "DefaultTime2Retain=Reject", "" },
	{ N, OP, "ErrorRecoveryLevel=0", OK, "ErrorRecoveryLevel=0", "" },
	{ N, OP, "ErrorRecoveryLevel=1", OK, "ErrorRecoveryLevel=0", "" },
	{ N, OP, "ErrorRecoveryLevel=2", OK, "ErrorRecoveryLevel=0", "" },
	{ N, OP, "ErrorRecoveryLevel=0x2", OK, "ErrorRecoveryLevel=0", "" },
	{ N, OP, "ErrorRecoveryLevel=3", OK, "ErrorRecoveryLevel=Reject", "" },
	{ N, OP, "ErrorRecoveryLevel=", OK, "ErrorRecoveryLevel=Reject", "" },
	{ N, OP, "ErrorRecoveryLevel=-1", OK, "ErrorRecoveryLevel=Reject", "" },
	{ N, OP, "ErrorRecoveryLevel=02", OK, "ErrorRecoveryLevel=Reject", "" },
	{ N, OP, "ErrorRecoveryLevel=0x", OK, "ErrorRecoveryLevel=Reject", "" },
	{ N, OP, "ErrorRecoveryLevel=18446744073709551616", OK, "ErrorRecoveryLevel=Reject", "" },
	{ N, OP, "ErrorRecoveryLevel=0~2", OK, "ErrorRecoveryLevel=Reject", "" },
	{ N, OP, "iSCSIProtocolLevel=0", OK, "iSCSIProtocolLevel=0", "protocol_level=0" },
	{ N, OP, "iSCSIProtocolLevel=1", OK, "iSCSIProtocolLevel=1", "" },
	{ N, OP, "iSCSIProtocolLevel=2", OK, "iSCSIProtocolLevel=2", "protocol_level=2" },
	{ N, OP, "iSCSIProtocolLevel=3", OK, "iSCSIProtocolLevel=2", "protocol_level=2" },
	{ N, OP, "iSCSIProtocolLevel=30", OK, "iSCSIProtocolLevel=2", "protocol_level=2" },
	{ N, OP, "iSCSIProtocolLevel=31", OK, "iSCSIProtocolLevel=2", "protocol_level=2" },
	{ N, OP, "iSCSIProtocolLevel=0x1f", OK, "iSCSIProtocolLevel=2", "protocol_level=2" },
	{ N, OP, "iSCSIProtocolLevel=32", OK, "iSCSIProtocolLevel=Reject", "" },
	{ N, OP, "iSCSIProtocolLevel=", OK, "iSCSIProtocolLevel=Reject", "" },
	{ N, OP, "iSCSIProtocolLevel=-1", OK, "iSCSIProtocolLevel=Reject", "" },
	{ N, OP, "iSCSIProtocolLevel=031", OK, "iSCSIProtocolLevel=Reject", "" },
	{ N, OP, "iSCSIProtocolLevel=0x", OK, "iSCSIProtocolLevel=Reject", "" },
	{ N, OP, "iSCSIProtocolLevel=18446744073709551616", OK, "iSCSIProtocolLevel=Reject", "" },
	{ N, OP, "iSCSIProtocolLevel=0~31", OK, "iSCSIProtocolLevel=Reject", "" },
	{ N, OP, "FirstBurstLength=65536|MaxBurstLength=4096", OK,
	  "MaxBurstLength=4096|FirstBurstLength=4096", "max_burst=4096 first_burst=4096" },
	{ N, OP, "MaxBurstLength=4096|FirstBurstLength=8192", OK,
	  "MaxBurstLength=4096|FirstBurstLength=4096", "max_burst=4096 first_burst=4096" },
	{ N, OP, "MaxBurstLength=4096", OK, "MaxBurstLength=4096", "max_burst=4096" },
	{ N, OP, "FirstBurstLength=262144|MaxBurstLength=16776192", OK,
	  "MaxBurstLength=1048576|FirstBurstLength=262144",
	  "max_burst=1048576 first_burst=262144" },
	{ N, OP, "MaxRecvDataSegmentLength=512", OK, "", "max_send=512" },
	{ N, FFP, "MaxRecvDataSegmentLength=512", OK, "", "max_send=512" },
	{ N, OP, "MaxRecvDataSegmentLength=513", OK, "", "max_send=513" },
	{ N, FFP, "MaxRecvDataSegmentLength=513", OK, "", "max_send=513" },
	{ N, OP, "MaxRecvDataSegmentLength=8192", OK, "", "" },
	{ N, FFP, "MaxRecvDataSegmentLength=8192", OK, "", "" },
	{ N, OP, "MaxRecvDataSegmentLength=262144", OK, "", "max_send=262144" },
	{ N, FFP, "MaxRecvDataSegmentLength=262144", OK, "", "max_send=262144" },
	{ N, OP, "MaxRecvDataSegmentLength=16777215", OK, "", "max_send=16777215" },
	{ N, FFP, "MaxRecvDataSegmentLength=16777215", OK, "", "max_send=16777215" },
	{ N, OP, "MaxRecvDataSegmentLength=0x10000", OK, "", "max_send=65536" },
	{ N, FFP, "MaxRecvDataSegmentLength=0x10000", OK, "", "max_send=65536" },
	{ N, OP, "MaxRecvDataSegmentLength=511", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=0", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=16777216", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=-1", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=08192", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=Reject", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=None", PROTOCOL, NULL, "" },
	{ N, OP, "TaskReporting=RFC3720", OK, "TaskReporting=RFC3720", "" },
	{ N, OP, "TaskReporting=ResponseFence", OK, "TaskReporting=ResponseFence",
	  "task_reporting=1" },
	{ N, OP, "TaskReporting=FastAbort,ResponseFence,RFC3720", OK, "TaskReporting=ResponseFence",
	  "task_reporting=1" },
	{ N, OP, "TaskReporting=RFC3720,FastAbort", OK, "TaskReporting=RFC3720", "" },
	{ N, OP, "TaskReporting=FastAbort", OK, "TaskReporting=Reject", "" },
	{ N, OP, "IFMarker=Yes", OK, "IFMarker=No", "" },
	{ N, OP, "IFMarker=No", OK, "IFMarker=No", "" },
	{ N, OP, "OFMarker=Yes", OK, "OFMarker=No", "" },
	{ N, OP, "OFMarker=No", OK, "OFMarker=No", "" },
	{ N, OP, "IFMarkInt=2048~8192", OK, "IFMarkInt=Reject", "" },
	{ N, OP, "IFMarkInt=Irrelevant", OK, "IFMarkInt=Reject", "" },
	{ N, OP, "OFMarkInt=2048~8192", OK, "OFMarkInt=Reject", "" },
	{ N, SEC, "X-com.example.fast=Yes", OK, "X-com.example.fast=NotUnderstood", "" },
	{ N, OP, "X-com.example.fast=Yes", OK, "X-com.example.fast=NotUnderstood", "" },
	{ N, FFP, "X-com.example.fast=Yes", OK, "X-com.example.fast=NotUnderstood", "" },
	{ N, OP, "X-1=Yes", OK, "X-1=NotUnderstood", "" },
	{ N, OP, "RDMAExtensions=Yes", OK, "RDMAExtensions=NotUnderstood", "" },
	{ N, SEC, "maxburstlength=Yes", OK, "maxburstlength=NotUnderstood", "" },
	{ N, OP, "maxburstlength=Yes", OK, "maxburstlength=NotUnderstood", "" },
	{ N, FFP, "maxburstlength=Yes", OK, "maxburstlength=NotUnderstood", "" },
	{ N, OP, "TargetRecvDataSegmentLength=Yes", OK, "TargetRecvDataSegmentLength=NotUnderstood",
	  "" },
	{ N, OP, "X-odd=NotUnderstood", OK, "", "" },
	{ N, OP, "X-odd=Irrelevant", OK, "", "" },
	{ N, OP, "X-odd=Reject", OK, "", "" },
	{ N, OP, "X#NodeArchitecture=linux,6.1", OK, "", "" },
	{ N, OP, "TargetAlias=1", PROTOCOL, NULL, "" },
	{ N, OP, "TargetAlias=NotUnderstood", OK, "", "" },
	{ N, OP, "TargetAddress=1", PROTOCOL, NULL, "" },
	{ N, OP, "TargetAddress=NotUnderstood", OK, "", "" },
	{ N, OP, "TargetPortalGroupTag=1", PROTOCOL, NULL, "" },
	{ N, OP, "TargetPortalGroupTag=NotUnderstood", OK, "", "" },
	{ D, OP, "MaxConnections=1", OK, "MaxConnections=Irrelevant", "" },
	{ D, OP, "InitialR2T=No", OK, "InitialR2T=Irrelevant", "" },
	{ D, OP, "ImmediateData=Yes", OK, "ImmediateData=Irrelevant", "" },
	{ D, OP, "MaxBurstLength=512", OK, "MaxBurstLength=Irrelevant", "" },
	{ D, OP, "FirstBurstLength=512", OK, "FirstBurstLength=Irrelevant", "" },
	{ D, OP, "MaxOutstandingR2T=1", OK, "MaxOutstandingR2T=Irrelevant", "" },
	{ D, OP, "DataPDUInOrder=Yes", OK, "DataPDUInOrder=Irrelevant", "" },
	{ D, OP, "DataSequenceInOrder=Yes", OK, "DataSequenceInOrder=Irrelevant", "" },
	{ D, OP, "TaskReporting=ResponseFence", OK, "TaskReporting=Irrelevant", "" },
	{ D, OP, "iSCSIProtocolLevel=2", OK, "iSCSIProtocolLevel=Irrelevant", "" },
	{ D, OP, "HeaderDigest=CRC32C", OK, "HeaderDigest=CRC32C", "header_digest=1" },
	{ D, OP, "ErrorRecoveryLevel=2", OK, "ErrorRecoveryLevel=0", "" },
	{ D, OP, "DefaultTime2Wait=5", OK, "DefaultTime2Wait=5", "time2wait_s=5" },
	{ D, OP, "MaxRecvDataSegmentLength=32768", OK, "", "max_send=32768" },
	{ N, OP, "FirstBurstLength=512|SessionType=Discovery", OK, "FirstBurstLength=Irrelevant",
	  "" },
	{ N, SEC, "MaxRecvDataSegmentLength=8192", PROTOCOL, NULL, "" },
	{ N, OP, "InitiatorName=iqn.2026-11.org.x:a", OK, "", "" },
	{ N, SEC, "InitiatorName=iqn.2026-11.org.x:a", OK, "", "" },
	{ N, FFP, "InitiatorName=iqn.2026-11.org.x:a", PROTOCOL, NULL, "" },
	{ N, OP, "TargetName=iqn.2026-11.org.x:a", OK, "", "" },
	{ N, SEC, "TargetName=iqn.2026-11.org.x:a", OK, "", "" },
	{ N, FFP, "TargetName=iqn.2026-11.org.x:a", PROTOCOL, NULL, "" },
	{ N, OP, "SessionType=Normal", OK, "", "" },
	{ N, SEC, "SessionType=Normal", OK, "", "" },
	{ N, FFP, "SessionType=Normal", PROTOCOL, NULL, "" },
	{ N, OP, "InitiatorAlias=me", OK, "", "" },
	{ N, FFP, "InitiatorAlias=me", OK, "", "" },
	{ N, OP, "SendTargets=All", PROTOCOL, NULL, "" },
	{ N, SEC, "SendTargets=All", PROTOCOL, NULL, "" },
	{ N, FFP, "SendTargets=All", DISCOVER, NULL, "" },
	{ N, SEC, "AuthMethod=None", AUTH, NULL, "" },
	{ N, OP, "AuthMethod=None", PROTOCOL, NULL, "" },
	{ N, FFP, "AuthMethod=None", PROTOCOL, NULL, "" },
	{ N, SEC, "CHAP_A=5", AUTH, NULL, "" },
	{ N, OP, "CHAP_A=5", PROTOCOL, NULL, "" },
	{ N, FFP, "CHAP_A=5", PROTOCOL, NULL, "" },
	{ N, SEC, "CHAP_I=1", AUTH, NULL, "" },
	{ N, OP, "CHAP_I=1", PROTOCOL, NULL, "" },
	{ N, FFP, "CHAP_I=1", PROTOCOL, NULL, "" },
	{ N, SEC, "CHAP_C=0x01", AUTH, NULL, "" },
	{ N, OP, "CHAP_C=0x01", PROTOCOL, NULL, "" },
	{ N, FFP, "CHAP_C=0x01", PROTOCOL, NULL, "" },
	{ N, SEC, "CHAP_N=x", AUTH, NULL, "" },
	{ N, OP, "CHAP_N=x", PROTOCOL, NULL, "" },
	{ N, FFP, "CHAP_N=x", PROTOCOL, NULL, "" },
	{ N, SEC, "CHAP_R=0x01", AUTH, NULL, "" },
	{ N, OP, "CHAP_R=0x01", PROTOCOL, NULL, "" },
	{ N, FFP, "CHAP_R=0x01", PROTOCOL, NULL, "" },
	{ N, OP, "InitiatorName=", BAD_NAME, NULL, "" },
	{ N, OP, "InitiatorName=demo", BAD_NAME, NULL, "" },
	{ N, OP, "InitiatorName=iqn.2026-11.org.x:a b", BAD_NAME, NULL, "" },
	{ N, OP, "InitiatorName=iqn.2026-11.org.x:a\x1b", BAD_NAME, NULL, "" },
	{ N, OP, "TargetName=", BAD_NAME, NULL, "" },
	{ N, OP, "TargetName=demo", BAD_NAME, NULL, "" },
	{ N, OP, "TargetName=iqn.2026-11.org.x:a b", BAD_NAME, NULL, "" },
	{ N, OP, "TargetName=iqn.2026-11.org.x:a\x1b", BAD_NAME, NULL, "" },
	{ N, OP, "SessionType=", BAD_TYPE, NULL, "" },
	{ N, OP, "SessionType=normal", BAD_TYPE, NULL, "" },
	{ N, OP, "SessionType=Discovery,Normal", BAD_TYPE, NULL, "" },
	{ N, OP, "SessionType=Backup", BAD_TYPE, NULL, "" },
	{ N, OP, "InitiatorName=iqn.2026-11.org.x:a|InitiatorName=iqn.2026-11.org.x:a", PROTOCOL,
	  NULL, "" },
	{ N, OP, "SessionType=Normal|SessionType=Normal", PROTOCOL, NULL, "" },
	{ N, OP, "MaxRecvDataSegmentLength=8192|MaxRecvDataSegmentLength=8192", PROTOCOL, NULL,
	  "" },
	{ N, OP, "X-a=1|HeaderDigest=None|ErrorRecoveryLevel=0", OK,
	  "X-a=NotUnderstood|HeaderDigest=None|ErrorRecoveryLevel=0", "" },
	{ N, OP, "HeaderDigest", PROTOCOL, NULL, "" },
	{ N, OP, "=None", PROTOCOL, NULL, "" },
	{ N, OP, "Header Digest=None", PROTOCOL, NULL, "" },
	{ N, OP, "Header\x01=x", PROTOCOL, NULL, "" },
	{ N, OP, "Header,Digest=None", PROTOCOL, NULL, "" },
	{ N, OP, "=", PROTOCOL, NULL, "" },
	{ N, OP, "|HeaderDigest=None||", OK, "HeaderDigest=None", "" },
	{ N, OP, "HeaderDigest=a=b", OK, "HeaderDigest=Reject", "" },
};

static void changes(const struct iscsi_params *p, char *text, size_t size)
{
	const struct {
		const char *name;
		unsigned value, standard;
	} all[] = {
		{ "header_digest", p->header_digest, 0 },
		{ "data_digest", p->data_digest, 0 },
		{ "initial_r2t", p->initial_r2t, 1 },
		{ "immediate_data", p->immediate_data, 1 },
		{ "data_pdu_in_order", p->data_pdu_in_order, 1 },
		{ "data_sequence_in_order", p->data_sequence_in_order, 1 },
		{ "max_recv", p->max_recv, 8192 },
		{ "max_send", p->max_send, 8192 },
		{ "max_burst", p->max_burst, 262144 },
		{ "first_burst", p->first_burst, 65536 },
		{ "max_outstanding_r2t", p->max_outstanding_r2t, 1 },
		{ "time2wait_s", p->time2wait_s, 2 },
		{ "time2retain_s", p->time2retain_s, 20 },
		{ "error_recovery_level", p->error_recovery_level, 0 },
		{ "max_connections", p->max_connections, 1 },
		{ "protocol_level", p->protocol_level, 1 },
		{ "task_reporting", p->task_reporting, 0 },
	};
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (all[i].value != all[i].standard)
			at += (size_t)snprintf(text + at, size - at, "%s%s=%u", at ? " " : "",
					       all[i].name, all[i].value);
	}
}

/* A text as it is on the wire, in memory of exactly its size. */
static char *wire(const char *offer, size_t *len)
{
	char *text = strdup(offer);

	*len = strlen(offer) + 1;
	for (size_t i = 0; i < *len; i++) {
		if (text[i] == '|')
			text[i] = '\0';
	}
	return text;
}

static void answer_text(const struct iscsi_out *out, char *text)
{
	for (size_t i = 0; i < out->len; i++)
		text[i] = out->data[i] || i + 1 == out->len ? out->data[i] : '|';
	if (!out->len)
		text[0] = '\0';
}

static enum iscsi_key_verdict other(void *arg, const struct iscsi_pair *pair)
{
	(void)arg;
	return pair->key == ISCSI_KEY_SEND_TARGETS ? DISCOVER : AUTH;
}

static enum iscsi_key_verdict take(struct iscsi_keys *keys, enum iscsi_phase phase,
				   const char *offer, char *answer)
{
	static char data[4096];
	struct iscsi_out out = { .data = data, .size = sizeof(data) };
	enum iscsi_key_verdict verdict;
	size_t len;
	char *text = wire(offer, &len);

	verdict = iscsi_keys_take_text(keys, phase, text, len, &out, other, NULL);
	answer_text(&out, answer);
	free(text);
	return verdict;
}

START_TEST(an_offer_is_answered_by_its_rule_and_only_that_changes)
{
	const struct row *row = &rows[_i];
	char answer[4096], changed[1024];
	struct iscsi_keys keys;

	iscsi_keys_init(&keys);
	keys.session_type = row->type;
	ck_assert_msg(take(&keys, row->phase, row->offer, answer) == row->verdict, "%s",
		      row->offer);
	if (!row->answer)
		return;
	ck_assert_str_eq(answer, row->answer);
	changes(&keys.params, changed, sizeof(changed));
	ck_assert_str_eq(changed, row->changed);
}
END_TEST

START_TEST(operational_keys_are_for_their_stage_and_come_once)
{
	static const char *const offers[] = {
		"HeaderDigest=None",    "DataDigest=None",       "MaxConnections=1",
		"InitialR2T=Yes",       "ImmediateData=Yes",     "MaxBurstLength=512",
		"FirstBurstLength=512", "DefaultTime2Wait=2",    "DefaultTime2Retain=0",
		"MaxOutstandingR2T=1",  "DataPDUInOrder=Yes",    "DataSequenceInOrder=Yes",
		"ErrorRecoveryLevel=0", "TaskReporting=RFC3720", "iSCSIProtocolLevel=1",
		"IFMarker=No",
	};
	const char *offer = offers[_i];
	char answer[4096], twice[256];
	struct iscsi_keys keys;

	ck_assert_uint_lt((size_t)_i, ARRAY_LEN(offers));
	iscsi_keys_init(&keys);
	snprintf(twice, sizeof(twice), "%s|%s", offer, offer);
	ck_assert_int_eq(take(&keys, OP, offer, answer), OK);
	iscsi_keys_init(&keys);
	ck_assert_int_eq(take(&keys, OP, twice, answer), PROTOCOL);
	iscsi_keys_init(&keys);
	ck_assert_int_eq(take(&keys, SEC, offer, answer), PROTOCOL);
	ck_assert_int_eq(take(&keys, FFP, offer, answer), PROTOCOL);
}
END_TEST

START_TEST(a_key_cannot_be_negotiated_again_in_a_later_text)
{
	char answer[4096];
	struct iscsi_keys keys;

	iscsi_keys_init(&keys);
	ck_assert_int_eq(take(&keys, OP, "MaxBurstLength=4096", answer), OK);
	ck_assert_int_eq(take(&keys, OP, "MaxBurstLength=512", answer), PROTOCOL);
	ck_assert_uint_eq(keys.params.max_burst, 4096);
	ck_assert(iscsi_keys_seen(&keys, ISCSI_KEY_MAX_BURST_LENGTH));
	ck_assert(!iscsi_keys_seen(&keys, ISCSI_KEY_FIRST_BURST_LENGTH));
}
END_TEST

START_TEST(names_may_be_said_again_but_not_changed)
{
	static const char *const later[][2] = {
		{ "InitiatorName=IQN.2026-11.org.x:a", "InitiatorName=iqn.2026-11.org.x:b" },
		{ "TargetName=iqn.2026-11.org.x:T", "TargetName=iqn.2026-11.org.x:u" },
		{ "SessionType=Normal", "SessionType=Discovery" },
	};

	for (size_t i = 0; i < ARRAY_LEN(later); i++) {
		struct iscsi_keys keys;
		char answer[4096];

		iscsi_keys_init(&keys);
		ck_assert_int_eq(take(&keys, SEC,
				      "InitiatorName=iqn.2026-11.org.x:a|SessionType=Normal|"
				      "TargetName=iqn.2026-11.org.X:t",
				      answer),
				 OK);
		ck_assert_int_eq(take(&keys, OP, later[i][0], answer), OK);
		ck_assert_int_eq(take(&keys, OP, later[i][1], answer), PROTOCOL);
		ck_assert_str_eq(keys.initiator_name, "iqn.2026-11.org.x:a");
		ck_assert_str_eq(keys.target_name, "iqn.2026-11.org.x:t");
		ck_assert_int_eq(keys.session_type, ISCSI_SESSION_NORMAL);
	}
}
END_TEST

START_TEST(names_and_values_end_at_their_limits)
{
	static char text[9000];
	char answer[9000];

	for (size_t n = 60; n < 67; n++) {
		struct iscsi_keys keys;

		iscsi_keys_init(&keys);
		memset(text, 'K', n);
		strcpy(text + n, "=v");
		ck_assert_int_eq(take(&keys, OP, text, answer), n <= 63 ? OK : PROTOCOL);
	}
	for (size_t n = 253; n < 258; n++) {
		struct iscsi_keys keys;

		iscsi_keys_init(&keys);
		strcpy(text, "InitiatorAlias=");
		memset(text + 15, 'v', n);
		text[15 + n] = '\0';
		ck_assert_int_eq(take(&keys, OP, text, answer), n <= 255 ? OK : PROTOCOL);
		ck_assert_uint_eq(strlen(keys.initiator_alias), n <= 255 ? n : 0);
	}
	for (size_t n = 8190; n < 8194; n++) {
		struct iscsi_keys keys;

		iscsi_keys_init(&keys);
		strcpy(text, "CHAP_C=");
		memset(text + 7, '0', n);
		text[7 + n] = '\0';
		ck_assert_int_eq(take(&keys, SEC, text, answer), n <= 8191 ? AUTH : PROTOCOL);
		memcpy(text, "X-abcd", 6);
		ck_assert_int_eq(take(&keys, SEC, text, answer), n <= 8191 ? OK : PROTOCOL);
	}
}
END_TEST

START_TEST(a_text_without_its_last_nul_is_malformed)
{
	static const char text[] = "HeaderDigest=None\0DataDigest=CRC32C";
	char data[256];
	struct iscsi_out out = { .data = data, .size = sizeof(data) };
	struct iscsi_keys keys;

	iscsi_keys_init(&keys);
	ck_assert_int_eq(iscsi_keys_take_text(&keys, OP, text, sizeof(text) - 1, &out, other, NULL),
			 PROTOCOL);
	ck_assert(!keys.params.data_digest);
}
END_TEST

START_TEST(an_answer_that_does_not_fit_is_told)
{
	static const char text[] = "X-a=1\0X-b=2\0X-c=3";
	char data[33]; /* two answers of 17 bytes and one byte less */
	struct iscsi_out out = { .data = data, .size = sizeof(data) };
	struct iscsi_keys keys;

	iscsi_keys_init(&keys);
	ck_assert_int_eq(iscsi_keys_take_text(&keys, OP, text, sizeof(text), &out, other, NULL),
			 OK);
	ck_assert(out.full);
	ck_assert_uint_eq(out.len, strlen("X-a=NotUnderstood") + 1);
}
END_TEST

START_TEST(first_burst_never_exceeds_max_burst_in_the_end)
{
	static const struct {
		const char *first, *second;
		unsigned first_burst, max_burst;
	} cases[] = {
		{ "MaxBurstLength=512", "", 512, 512 },
		{ "FirstBurstLength=131072", "MaxBurstLength=1024", 1024, 1024 },
		{ "MaxBurstLength=1024", "FirstBurstLength=131072", 1024, 1024 },
		{ "FirstBurstLength=262144", "", 262144, 262144 },
		{ "", "", 65536, 262144 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct iscsi_keys keys;
		char answer[256];

		iscsi_keys_init(&keys);
		ck_assert_int_eq(take(&keys, OP, cases[i].first, answer), OK);
		ck_assert_int_eq(take(&keys, OP, cases[i].second, answer), OK);
		iscsi_keys_settle(&keys, i & 1);
		ck_assert_uint_eq(keys.params.first_burst, cases[i].first_burst);
		ck_assert_uint_eq(keys.params.max_burst, cases[i].max_burst);
		ck_assert_uint_eq(keys.params.max_recv, i & 1 ? ISCSI_OUR_MAX_RECV : 8192);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("keys");
	TCase *tc = tcase_create("keys");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, an_offer_is_answered_by_its_rule_and_only_that_changes, 0,
			    ARRAY_LEN(rows));
	tcase_add_loop_test(tc, operational_keys_are_for_their_stage_and_come_once, 0, 16);
	tcase_add_test(tc, a_key_cannot_be_negotiated_again_in_a_later_text);
	tcase_add_test(tc, names_may_be_said_again_but_not_changed);
	tcase_add_test(tc, names_and_values_end_at_their_limits);
	tcase_add_test(tc, a_text_without_its_last_nul_is_malformed);
	tcase_add_test(tc, an_answer_that_does_not_fit_is_told);
	tcase_add_test(tc, first_burst_never_exceeds_max_burst_in_the_end);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
