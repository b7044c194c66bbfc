#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Every key of RFC 7143 section 13 is negotiated by its rule, in and out of its range."""

from harness import case, main
from iscsi import STAGE_OPERATIONAL, check
from pdu import decode_text

REFUSED = ("Reject",)
OUT_OF_RANGE = ("-1", "", "abc", "12abc", "0x", "4294967296", "99999999999999999999999", "1.5",
                " 5")


def offer(t, *pairs):
    """What the target answers to these keys in the operational stage: (status, {key: value})."""
    with t.connect() as session:
        pdu = session.login_exchange(STAGE_OPERATIONAL, keys=[*session.names().items(), *pairs])
        if pdu.login_status:
            check(pdu.login_status >> 8 == 2, f"status {pdu.login_status:04x}")
            session.expect_closed()
            return pdu.login_status, {}
        answers = decode_text(pdu.data)
        check(len(dict(answers)) == len(answers), f"a key twice in {answers}")
        return 0, dict(answers)


def is_refused(t, key, value):
    status, answers = offer(t, (key, value))
    check(status or answers.get(key) in REFUSED,
          f"{key}={value} is answered {answers.get(key)!r}, not refused")


# key, low, high, function of the two sides' values, ours: (lowest, highest) that we can be given
NUMBERS = {
    "MaxConnections": (1, 65535, min), "MaxBurstLength": (512, 16777215, min),
    "FirstBurstLength": (512, 16777215, min), "DefaultTime2Wait": (0, 3600, max),
    "DefaultTime2Retain": (0, 3600, min), "MaxOutstandingR2T": (1, 65535, min),
    "ErrorRecoveryLevel": (0, 2, min),
}
IN_RANGE = [(key, value) for key, (low, high, _) in NUMBERS.items()
            for value in dict.fromkeys((low, low + 1, (low + high) // 2, high))]


@case(each=IN_RANGE)
def a_number_in_range(t, key, value):
    status, answers = offer(t, (key, value))
    low, high, function = NUMBERS[key]
    check(status == 0 and key in answers, f"status {status:04x}, answers {answers}")
    answer = int(answers[key])
    check(low <= answer <= high, f"the answer {answer} is out of range")
    check(function(answer, value) == answer, f"{answer} is not {function.__name__}({value}, ours)")
    if key in ("ErrorRecoveryLevel",):
        check(answer == 0, f"level {answer}: recovery that is not there")
    if key == "MaxConnections":
        check(answer == 1, f"{answer} connections")


@case(each=[(key, value) for key, (low, high, _) in NUMBERS.items()
            for value in (*((low - 1,) if low else ()), high + 1, *OUT_OF_RANGE)])
def a_number_out_of_range(t, key, value):
    is_refused(t, key, value)


@case(each=[("MaxBurstLength", "0x2000", 8192), ("FirstBurstLength", "0X400", 1024),
            ("DefaultTime2Retain", "0x0", 0)])
def a_hexadecimal_number(t, key, text, value):
    status, answers = offer(t, (key, text))
    check(status == 0 and int(answers.get(key, "-1"), 0) == value, f"{status:04x} {answers}")


@case
def a_first_burst_is_no_longer_than_a_burst(t):
    with t.login(MaxBurstLength=1024, FirstBurstLength=65536) as session:
        check(session.value("FirstBurstLength") <= session.value("MaxBurstLength") == 1024,
              f"{session.params['FirstBurstLength']} > {session.params['MaxBurstLength']}")


BOOLEANS = {"InitialR2T": "or", "ImmediateData": "and", "DataPDUInOrder": "or",
            "DataSequenceInOrder": "or"}


@case(each=[(key, value) for key in BOOLEANS for value in ("Yes", "No")])
def a_boolean(t, key, value):
    status, answers = offer(t, (key, value))
    # The value that decides alone may go without an answer only for "or" Yes and "and" No.
    forced = "Yes" if BOOLEANS[key] == "or" else "No"
    answer = answers.get(key, forced if value == forced else None)
    check(status == 0 and answer in ("Yes", "No"), f"{status:04x} {answers}")
    check(value != forced or answer == forced, f"{value} offered, {answer} answered")
    if key in ("DataPDUInOrder", "DataSequenceInOrder"):
        check(answer == "Yes", "out of order at ErrorRecoveryLevel 0")


@case(each=[(key, value) for key in BOOLEANS for value in ("yes", "NO", "1", "", "Maybe",
                                                           "Yes,No")])
def a_boolean_that_is_none(t, key, value):
    is_refused(t, key, value)


DIGESTS = [("None", "None"), ("CRC32C", "CRC32C"), ("CRC32C,None", "CRC32C"),
           ("None,CRC32C", "None"), ("X-org.yoke.sum,CRC32C", "CRC32C"), ("crc32c,None", "None"),
           ("CRC32CX,None", "None")]


@case(each=[(key, *row) for key in ("HeaderDigest", "DataDigest") for row in DIGESTS])
def the_first_digest_known_of_a_list(t, key, value, expected):
    status, answers = offer(t, (key, value))
    check(status == 0 and answers.get(key) == expected, f"{status:04x} {answers}")


@case(each=[(key, value) for key in ("HeaderDigest", "DataDigest")
            for value in ("MD5", "", ",", "crc32c", "CRC32")])
def no_digest_known(t, key, value):
    is_refused(t, key, value)


@case(each=["512", "8192", "262144", "16777215", "0x1000"])
def a_segment_length_is_declared_not_answered(t, value):
    with t.connect() as session:
        pdu = session.login_exchange(keys={**session.names(), "MaxRecvDataSegmentLength": value})
        check(pdu.login_status == 0, f"status {pdu.login_status:04x}")
        declared = [v for k, v in decode_text(pdu.data) if k == "MaxRecvDataSegmentLength"]
        check(len(declared) <= 1, f"declared {declared}")
        check(not declared or 512 <= int(declared[0]) <= 16777215, f"declared {declared}")


@case(each=["0", "511", "16777216", *OUT_OF_RANGE])
def a_segment_length_out_of_range(t, value):
    is_refused(t, "MaxRecvDataSegmentLength", value)


@case(each=["X-org.yoke.test", "Nonsense", "X#42", "maxburstlength", "MaxBurstLengt",
            "MaxBurstLengthX", "K" * 63])
def an_unknown_key(t, key):
    status, answers = offer(t, (key, "1"), ("MaxBurstLength", 8192))
    check(status == 0 and answers.get(key) == "NotUnderstood", f"{status:04x} {answers}")
    check(answers.get("MaxBurstLength") == "8192", "the key behind it is lost")


@case(each=[(key, word) for key in ("MaxBurstLength", "InitialR2T", "HeaderDigest")
            for word in ("Reject", "NotUnderstood", "Irrelevant", "None,Reject", "?")])
def a_word_that_is_no_offer(t, key, word):
    status, answers = offer(t, (key, word))
    allowed = (None, "Reject") if key != "HeaderDigest" or "None" not in word else (None, "None")
    check(status or answers.get(key) in allowed, f"{key}={word} is answered {answers.get(key)!r}")


@case(each=["Reject", "NotUnderstood", "Irrelevant"])
def a_comment_on_an_unknown_key_is_not_answered(t, word):
    status, answers = offer(t, ("X-org.yoke.test", word))
    check(status == 0 and "X-org.yoke.test" not in answers, f"{status:04x} {answers}")


# Obsolete: No or Reject to the first two, Reject to the others, never NotUnderstood.
@case(each=[("IFMarker", "No", ("No", "Reject")), ("OFMarker", "Yes", ("No", "Reject")),
            ("IFMarkInt", "2048", ("Reject",)), ("OFMarkInt", "2048~8192", ("Reject",))])
def an_obsolete_key(t, key, value, expected):
    status, answers = offer(t, (key, value))
    check(status == 0 and answers.get(key) in expected, f"{status:04x} {answers}")


@case
def an_alias_is_taken_without_an_answer(t):
    status, answers = offer(t, ("InitiatorAlias", "a friendly name with spaces"))
    check(status == 0 and "InitiatorAlias" not in answers, f"{status:04x} {answers}")


@case(each=[("TargetAlias", "mine"), ("TargetPortalGroupTag", "1"), ("TargetAddress", "127.0.0.1")])
def a_key_that_only_a_target_may_send(t, key, value):
    is_refused(t, key, value)


@case(each=[(1, 1), (2, 2), (31, 2)])
def the_protocol_level_is_the_lower_one(t, ours, expected):
    status, answers = offer(t, ("iSCSIProtocolLevel", ours))
    check(status == 0 and answers.get("iSCSIProtocolLevel") == str(expected),
          f"{status:04x} {answers}")


@case(each=["RFC3720", "RFC3720,FastAbort", "ResponseFence", "FastAbort,ResponseFence,RFC3720"])
def task_reporting_is_chosen_from_the_list(t, value):
    status, answers = offer(t, ("TaskReporting", value))
    check(status == 0 or value == "ResponseFence", f"status {status:04x}")
    if status == 0:
        check(answers.get("TaskReporting") in (*value.split(","), "Reject"), f"{answers}")


@case
def all_keys_at_once(t):
    pairs = [("HeaderDigest", "None"), ("DataDigest", "None"), ("MaxConnections", 1),
             ("InitialR2T", "No"), ("ImmediateData", "Yes"), ("MaxRecvDataSegmentLength", 262144),
             ("MaxBurstLength", 16776192), ("FirstBurstLength", 262144), ("DefaultTime2Wait", 2),
             ("DefaultTime2Retain", 0), ("MaxOutstandingR2T", 1), ("DataPDUInOrder", "Yes"),
             ("DataSequenceInOrder", "Yes"), ("ErrorRecoveryLevel", 0), ("IFMarker", "No"),
             ("OFMarker", "No"), ("iSCSIProtocolLevel", 2), ("TaskReporting", "RFC3720")]
    status, answers = offer(t, *pairs)
    missing = {key for key, _ in pairs} - answers.keys() - {"MaxRecvDataSegmentLength"}
    check(status == 0 and not missing, f"status {status:04x}, unanswered {missing}")
    check("NotUnderstood" not in answers.values(), f"{answers}")


if __name__ == "__main__":
    main()
